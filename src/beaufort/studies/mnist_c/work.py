"""The tasks of the study: trainings with their answers, and the pessimal noise."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from beaufort.studies.answers import write_answers
from beaufort.studies.failed import task_result
from beaufort.studies.mnist_c.answers import ask
from beaufort.studies.mnist_c.pessimal import learn_pessimal_noise
from beaufort.studies.mnist_c.settings import CLEAN, MODELS, Settings
from beaufort.studies.tasks import Task
from beaufort.training import TrainingData, load_trained, open_training_data, train

_HERE = "beaufort.studies.mnist_c.work"
_sources: dict[tuple[str, int | None], TrainingData] = {}
"""The training digits, opened once in a process."""

_KEPT = (
    *("recipe", "seed", "steps", "losses", "constant_loss"),
    *("seconds", "cpu_seconds", "device", "torch", "parameters"),
)
"""What is known of a training that is kept with its answers."""

PARTS = ("fig2", "fig3", "fig4", "selection", "pessimal", "gallery")
"""What can be asked for alone; the pages are made from whatever is there."""


def plan(settings: Settings, only: tuple[str, ...] = ()) -> list[list[Task]]:
    """What there is to do, in phases: Conv1, then what needs it or not."""
    parts = set(only or PARTS)
    common: dict[str, Any] = {"settings": asdict(settings)}
    seeds = range(settings.seeds)
    first = [_model_task("conv1", seed, common) for seed in seeds]
    second = []
    if parts & {"fig2", "fig3", "gallery"}:
        # what takes longest comes first, so that processes end together
        for name in ("abs", "conv2-pgd", "capsule", "conv3-gan", "conv3-pgd"):
            second += [_model_task(name, seed, common) for seed in seeds]
    if "pessimal" in parts:
        file = "pessimal/seed0.npz"
        second.append(Task("pessimal noise", file, f"{_HERE}:make_pessimal", {**common, "seed": 0}))
    if parts & {"fig4", "selection"}:
        for seed in seeds:
            second += [_tuned_task(kind, name, seed, common) for kind, name in _tunings(settings)]
    return [first, second]


def _tunings(settings: Settings) -> list[tuple[str, str]]:
    """`single` on clean digits and on each corruption, `but` one of all corruptions, and `all`.

    The paper's table has the same number for `all` and `all but one` on clean digits: they are not among
    what is trained on.
    """
    names = settings.all_corruptions
    return [("all", ""), *(("but", n) for n in names), *(("single", n) for n in (CLEAN, *names))]


def _model_task(name: str, seed: int, common: Mapping[str, Any]) -> Task:
    return Task(
        f"{MODELS[name]}, seed {seed}",
        f"answers/{name}-seed{seed}.npz",
        f"{_HERE}:make_model",
        {**common, "name": name, "seed": seed},
    )


def _tuned_task(kind: str, name: str, seed: int, common: Mapping[str, Any]) -> Task:
    label = f"{kind}-{name}" if name else kind
    return Task(
        f"Conv1 tuned on {label.replace('-', ' ')}, seed {seed}",
        f"tuned/{label}-seed{seed}.npz",
        f"{_HERE}:make_tuned",
        {**common, "kind": kind, "name": name, "seed": seed},
    )


def make_model(
    folder: Path, deadline: float | None, *, settings: Mapping[str, Any], name: str, seed: int
) -> bool | str:
    """Train a model of Figure 3 and ask it."""
    chosen = Settings(**settings)
    made = train(
        chosen.recipe(name),
        _source(chosen),
        output=folder / "models" / f"{name}-seed{seed}",
        seed=seed,
        device=chosen.device,
        deadline=deadline,
    )
    if not made.finished:
        return False
    # ABS optimizes for every digit, so it is asked about the tables' conditions alone
    conditions = (CLEAN, *(chosen.benchmark if name == "abs" else chosen.all_corruptions))
    answer_with(made.model, chosen, conditions, made.facts, folder / f"answers/{name}-seed{seed}.npz")
    return task_result(made.facts)


def make_tuned(
    folder: Path, deadline: float | None, *, settings: Mapping[str, Any], kind: str, name: str, seed: int
) -> bool | str:
    """Fine-tune a Conv1 and ask it; the weights are not kept."""
    chosen = Settings(**settings)
    recipe = replace(chosen.recipe("conv1-tuned"), start=str(folder / "models" / f"conv1-seed{seed}"))
    names = {
        "all": chosen.all_corruptions,
        "but": tuple(one for one in chosen.all_corruptions if one != name),
        "single": (name,),
    }[kind]
    if names == (CLEAN,):
        recipe = replace(recipe, intervention="plain", intervention_options={})
    else:
        recipe = replace(recipe, intervention_options={**recipe.intervention_options, "names": list(names)})
    label = f"{kind}-{name}" if name else kind
    place = folder / "tuning" / f"{label}-seed{seed}"
    made = train(recipe, _source(chosen), output=place, seed=seed, device=chosen.device, deadline=deadline)
    if not made.finished:
        return False
    conditions = (CLEAN, *chosen.all_corruptions)
    answer_with(made.model, chosen, conditions, made.facts, folder / "tuned" / f"{label}-seed{seed}.npz")
    shutil.rmtree(place)
    return task_result(made.facts)


def make_pessimal(folder: Path, deadline: float | None, *, settings: Mapping[str, Any], seed: int) -> bool:
    """Learn the noise that hurts a Conv1 most."""
    chosen = Settings(**settings)
    model, _ = load_trained(folder / "models" / f"conv1-seed{seed}")
    learn_pessimal_noise(model, _source(chosen), chosen, seed, folder / "pessimal" / f"seed{seed}.npz")
    return True


def answer_with(
    model: Any, settings: Settings, conditions: tuple[str, ...], training: Mapping[str, Any], path: Path
) -> None:
    """Ask a network and keep what it answers."""
    start = time.monotonic()
    facts = {key: training[key] for key in _KEPT}
    answers = ask(model, settings, conditions, facts)
    facts["asking_seconds"] = round(time.monotonic() - start, 1)
    write_answers(path, answers)


def _source(settings: Settings) -> TrainingData:
    key = settings.train, settings.train_limit
    if key not in _sources:
        _sources[key] = open_training_data(settings.train, limit=settings.train_limit)
    return _sources[key]

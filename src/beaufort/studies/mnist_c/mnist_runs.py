"""The tasks of the study: training runs with their predictions, and the pessimal noise."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from beaufort._core.errors import AssetError
from beaufort.corruptions import corruptions
from beaufort.studies.engine import PAGE, Study, StudyOptions
from beaufort.studies.failed_runs import task_result
from beaufort.studies.mnist_c.mnist_models import CLEAN, MODELS, MnistSettings
from beaufort.studies.predictions import (
    CorruptedImages,
    StudyPredictions,
    logits,
    read_test_images,
    write_predictions,
)
from beaufort.studies.study_tasks import StudyTask
from beaufort.training import Recipe, TrainingData, load_trained, open_training_data, train

_HERE = __name__
_KEPT = (
    *("recipe", "seed", "steps", "losses", "constant_loss"),
    *("seconds", "cpu_seconds", "device", "torch", "parameters"),
)
"""What is known of a training that is kept with its answers."""

PARTS = ("fig2", "fig3", "fig4", "selection", "pessimal", "gallery")
"""What can be asked for alone; the pages are made from whatever is there."""


def plan(settings: MnistSettings, only: tuple[str, ...] = ()) -> list[list[StudyTask]]:
    """What there is to do, in phases: Conv1, then what needs it or not."""
    parts = set(only or PARTS)
    common = {"settings": settings}
    seeds = range(settings.seeds)
    first = [_model_task("conv1", seed, common) for seed in seeds]
    second = []
    if parts & {"fig2", "fig3", "gallery"}:
        # what takes longest comes first, so that processes end together
        for name in ("abs", "conv2-pgd", "capsule", "conv3-gan", "conv3-pgd"):
            second += [_model_task(name, seed, common) for seed in seeds]
    if "pessimal" in parts:
        file = "pessimal/seed0.npz"
        second.append(StudyTask("pessimal noise", file, f"{_HERE}:make_pessimal", {**common, "seed": 0}))
    if parts & {"fig4", "selection"}:
        for seed in seeds:
            second += [_tuned_task(kind, name, seed, common) for kind, name in _tunings(settings)]
    return [first, second]


def _tunings(settings: MnistSettings) -> list[tuple[str, str]]:
    """`single` on clean digits and on each corruption, `but` one of all corruptions, and `all`.

    The paper's table has the same number for `all` and `all but one` on clean digits: they are not among
    what is trained on.
    """
    names = settings.all_corruptions
    return [("all", ""), *(("but", n) for n in names), *(("single", n) for n in (CLEAN, *names))]


def _model_task(name: str, seed: int, common: Mapping[str, Any]) -> StudyTask:
    return StudyTask(
        f"{MODELS[name]}, seed {seed}",
        f"answers/{name}-seed{seed}.npz",
        f"{_HERE}:make_model",
        {**common, "name": name, "seed": seed},
    )


def _tuned_task(kind: str, name: str, seed: int, common: Mapping[str, Any]) -> StudyTask:
    label = f"{kind}-{name}" if name else kind
    return StudyTask(
        f"Conv1 tuned on {label.replace('-', ' ')}, seed {seed}",
        f"tuned/{label}-seed{seed}.npz",
        f"{_HERE}:make_tuned",
        {**common, "kind": kind, "name": name, "seed": seed},
    )


def make_model(
    folder: Path, deadline: float | None, *, settings: MnistSettings, name: str, seed: int
) -> bool | str:
    """Train a model of Figure 3 and evaluate it."""
    # ABS optimizes for every digit, so it is evaluated under the tables' conditions alone
    names = settings.benchmark if name == "abs" else settings.all_corruptions
    label = f"{name}-seed{seed}"
    place, file = folder / "models" / label, folder / "answers" / f"{label}.npz"
    return _train_and_predict(settings.recipe(name), settings, seed, place, file, (CLEAN, *names), deadline)


def make_tuned(
    folder: Path, deadline: float | None, *, settings: MnistSettings, kind: str, name: str, seed: int
) -> bool | str:
    """Fine-tune a Conv1 and evaluate it; the weights are not kept."""
    recipe = replace(settings.recipe("conv1-tuned"), start=str(folder / "models" / f"conv1-seed{seed}"))
    names = {
        "all": settings.all_corruptions,
        "but": tuple(one for one in settings.all_corruptions if one != name),
        "single": (name,),
    }[kind]
    if names == (CLEAN,):
        recipe = replace(recipe, intervention="plain", intervention_options={})
    else:
        recipe = replace(recipe, intervention_options={**recipe.intervention_options, "names": list(names)})
    label = f"{kind}-{name}-seed{seed}" if name else f"{kind}-seed{seed}"
    place, file = folder / "tuning" / label, folder / "tuned" / f"{label}.npz"
    conditions = (CLEAN, *settings.all_corruptions)
    done = _train_and_predict(recipe, settings, seed, place, file, conditions, deadline)
    if done:
        shutil.rmtree(place)
    return done


def _train_and_predict(
    recipe: Recipe,
    settings: MnistSettings,
    seed: int,
    place: Path,
    file: Path,
    conditions: tuple[str, ...],
    deadline: float | None,
) -> bool | str:
    source = _source(settings.train, settings.train_limit)
    made = train(recipe, source, output=place, seed=seed, device=settings.device, deadline=deadline)
    if not made.finished:
        return False
    start = time.monotonic()
    facts = {key: made.facts[key] for key in _KEPT}
    predictions = _predict(made.model, settings, conditions, facts)
    facts["asking_seconds"] = round(time.monotonic() - start, 1)
    write_predictions(file, predictions)
    return task_result(made.facts)


def make_pessimal(folder: Path, deadline: float | None, *, settings: MnistSettings, seed: int) -> bool:
    """Learn the noise that hurts a Conv1 most."""
    from beaufort.studies.mnist_c.pessimal_noise import learn_pessimal_noise

    model, _ = load_trained(folder / "models" / f"conv1-seed{seed}")
    source = _source(settings.train, settings.train_limit)
    path = folder / "pessimal" / f"seed{seed}.npz"
    learn_pessimal_noise(model, source, test_digits(settings), seed, path, rehearse=settings.rehearse)
    return True


@lru_cache(maxsize=1)
def _source(data: str, limit: int | None) -> TrainingData:
    return open_training_data(data, limit=limit)


@lru_cache(maxsize=1)
def test_digits(settings: MnistSettings) -> CorruptedImages:
    """Return the test digits, corrupted as `beaufort run --suite mnist-c` does it, with the seed 0.

    Corruptions whose files cannot be fetched here are left out.
    """
    clean, labels, ids = read_test_images(settings.test, device=settings.device, limit=settings.test_limit)
    images = {CLEAN: clean}
    for name in settings.all_corruptions:
        with suppress(AssetError):
            images[name] = corruptions[name](clean, ids=ids, seed=0, scale="mnist")
    return CorruptedImages(images, labels)


def _predict(
    model: torch.nn.Module, settings: MnistSettings, conditions: tuple[str, ...], facts: dict[str, Any]
) -> StudyPredictions:
    """Return a network's predictions under conditions, in float32."""
    digits = test_digits(settings)
    there = tuple(name for name in conditions if name in digits.images)
    model = model.to(digits.labels.device).eval()
    rows = [logits(model, digits.images[name]).argmax(1) for name in there]
    predicted = torch.stack(rows).to(torch.uint8).cpu().numpy()
    return StudyPredictions(there, predicted, digits.labels.to(torch.uint8).cpu().numpy(), facts)


def _settings(options: StudyOptions) -> MnistSettings:
    place = options.data.get("mnist")
    places = {} if place is None else {"train": f"mnist:{place}#train", "test": f"mnist:{place}#test"}
    return options.settings(MnistSettings, **places)


def _files(folder: Path, options: StudyOptions) -> Iterator[tuple[str, bytes]]:
    from beaufort.studies.mnist_c.mnist_pages import study_files

    return study_files(folder, _settings(options))


STUDY = Study(
    name="mnist-c",
    parts=(*PARTS, PAGE),
    data=("mnist",),
    plan=lambda options: plan(_settings(options), options.parts),
    files=_files,
)

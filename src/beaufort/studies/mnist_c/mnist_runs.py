"""The tasks of the study: training runs with their predictions, and the pessimal noise."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from beaufort._core.errors import AssetError
from beaufort.corruptions import SUBSETS, corruptions
from beaufort.studies.engine import PAGE, Study, StudyOptions, StudySettings, definition
from beaufort.studies.failed_runs import task_result
from beaufort.studies.predictions import (
    CorruptedImages,
    StudyPredictions,
    logits,
    read_test_images,
    write_predictions,
)
from beaufort.studies.study_tasks import StudyTask
from beaufort.training import Recipe, TrainingData, get_recipe, load_trained, open_training_data, train

CLEAN = "none"
"""The paper's name of the clean digits."""

MODELS: Mapping[str, str] = definition("mnist-c")["models"]
"""Recipes, and the paper's names."""

PARTS = ("fig2", "fig3", "fig4", "selection", "pessimal", "gallery")

_FACTS = (
    *("recipe", "seed", "steps", "losses", "constant_loss"),
    *("seconds", "cpu_seconds", "device", "torch", "parameters"),
)
"""Facts of a training run that are stored with its predictions."""


@dataclass(frozen=True, kw_only=True)
class MnistSettings(StudySettings):
    """Extent of the study, and its datasets."""

    train: str = "mnist-train"
    test: str = "mnist-test"

    @property
    def benchmark(self) -> tuple[str, ...]:
        """The corruptions of the paper's tables."""
        return ("stripe", "brightness", "translate") if self.rehearse else SUBSETS["mnist-c"]

    @property
    def all_corruptions(self) -> tuple[str, ...]:
        """The 31 that the 15 of the tables were selected from; those of the tables first."""
        every = ("inverse",) if self.rehearse else SUBSETS["mnist-c-all"]
        return (*self.benchmark, *(name for name in every if name not in self.benchmark))

    @property
    def test_limit(self) -> int | None:
        return 40 if self.rehearse else None

    def recipe(self, name: str) -> Recipe:
        return get_recipe(name).changed(definition("mnist-c")["rehearsal"][name] if self.rehearse else [])


def plan(settings: MnistSettings, only: Sequence[str] = ()) -> list[list[StudyTask]]:
    """Return the tasks in phases: Conv1, then everything else."""
    parts, seeds = set(only or PARTS), range(settings.seeds)

    def task(title: str, file: str, function: str, **options: Any) -> StudyTask:
        return StudyTask(title, file, f"{__name__}:{function}", {"settings": settings, **options})

    def model(name: str, seed: int) -> StudyTask:
        title, file = f"{MODELS[name]}, seed {seed}", f"predictions/{name}-seed{seed}.npz"
        return task(title, file, "make_model", name=name, seed=seed)

    def tuned(kind: str, name: str, seed: int) -> StudyTask:
        label = f"{kind}-{name}" if name else kind
        title, file = f"Conv1 tuned on {label.replace('-', ' ')}", f"tuned/{label}-seed{seed}.npz"
        return task(f"{title}, seed {seed}", file, "make_tuned", kind=kind, name=name, seed=seed)

    second = []
    if parts & {"fig2", "fig3", "gallery"}:
        # the longest first, so that processes end together
        slow = ("abs", "conv2-pgd", "capsule", "conv3-gan", "conv3-pgd")
        second += [model(name, seed) for name in slow for seed in seeds]
    if "pessimal" in parts:
        second.append(task("pessimal noise", "pessimal/seed0.npz", "make_pessimal", seed=0))
    if parts & {"fig4", "selection"}:
        # the paper prints one number for `all` and `all but one` on clean digits: neither trains on those
        names = settings.all_corruptions
        tunings = [("all", ""), *(("but", n) for n in names), *(("single", n) for n in (CLEAN, *names))]
        second += [tuned(kind, name, seed) for seed in seeds for kind, name in tunings]
    return [[model("conv1", seed) for seed in seeds], second]


def make_model(
    folder: Path, deadline: float | None, *, settings: MnistSettings, name: str, seed: int
) -> bool | str:
    """Train a model of Figure 3 and evaluate it."""
    # ABS optimizes for every digit, so it is evaluated only under the conditions of the tables
    names = settings.benchmark if name == "abs" else settings.all_corruptions
    label = f"{name}-seed{seed}"
    output, file = folder / "models" / label, folder / "predictions" / f"{label}.npz"
    return _train_and_predict(settings.recipe(name), settings, seed, output, file, (CLEAN, *names), deadline)


def make_tuned(
    folder: Path, deadline: float | None, *, settings: MnistSettings, kind: str, name: str, seed: int
) -> bool | str:
    """Fine-tune a Conv1 and evaluate it; its weights are deleted."""
    every = settings.all_corruptions
    names = {"all": every, "but": tuple(one for one in every if one != name), "single": (name,)}[kind]
    recipe = replace(settings.recipe("conv1-tuned"), start=str(folder / "models" / f"conv1-seed{seed}"))
    if names == (CLEAN,):
        recipe = replace(recipe, intervention="plain", intervention_options={})
    else:
        recipe = replace(recipe, intervention_options={**recipe.intervention_options, "names": list(names)})
    label = f"{kind}-{name}-seed{seed}" if name else f"{kind}-seed{seed}"
    output, file = folder / "tuning" / label, folder / "tuned" / f"{label}.npz"
    done = _train_and_predict(recipe, settings, seed, output, file, (CLEAN, *every), deadline)
    if done:
        shutil.rmtree(output)
    return done


def _train_and_predict(
    recipe: Recipe,
    settings: MnistSettings,
    seed: int,
    output: Path,
    file: Path,
    conditions: tuple[str, ...],
    deadline: float | None,
) -> bool | str:
    source = training_digits(settings)
    made = train(recipe, source, output=output, seed=seed, device=settings.device, deadline=deadline)
    if not made.finished:
        return False
    start = time.monotonic()
    digits = test_digits(settings)
    names = tuple(name for name in conditions if name in digits.images)
    model = made.model.to(digits.labels.device).eval()
    rows = [logits(model, digits.images[name]).argmax(1) for name in names]
    facts = {key: made.facts[key] for key in _FACTS}
    facts["prediction_seconds"] = round(time.monotonic() - start, 1)
    predicted, labels = (one.to(torch.uint8).cpu().numpy() for one in (torch.stack(rows), digits.labels))
    write_predictions(file, StudyPredictions(names, predicted, labels, facts))
    return task_result(made.facts)


def make_pessimal(folder: Path, deadline: float | None, *, settings: MnistSettings, seed: int) -> bool:
    """Learn the noise that hurts a Conv1 most."""
    from beaufort.studies.mnist_c.pessimal_noise import learn_pessimal_noise

    model, _ = load_trained(folder / "models" / f"conv1-seed{seed}")
    path, digits = folder / "pessimal" / f"seed{seed}.npz", test_digits(settings)
    learn_pessimal_noise(model, training_digits(settings), digits, seed, path, rehearse=settings.rehearse)
    return True


@lru_cache(maxsize=1)
def training_digits(settings: MnistSettings) -> TrainingData:
    """Open the training digits."""
    return open_training_data(settings.train, limit=300 if settings.rehearse else None)


@lru_cache(maxsize=1)
def test_digits(settings: MnistSettings) -> CorruptedImages:
    """Return the test digits, corrupted as by `beaufort run --suite mnist-c` with seed 0.

    Corruptions whose files cannot be downloaded are skipped.
    """
    clean, labels, ids = read_test_images(settings.test, device=settings.device, limit=settings.test_limit)
    images = {CLEAN: clean}
    for name in settings.all_corruptions:
        with suppress(AssetError):
            images[name] = corruptions[name](clean, ids=ids, seed=0, scale="mnist")
    return CorruptedImages(images, labels)


def _settings(options: StudyOptions) -> MnistSettings:
    return options.settings(MnistSettings, **options.mnist())


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

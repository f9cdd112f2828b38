"""Training runs of a study's arms and their predictions on the test images, as tasks."""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from beaufort._core.errors import AssetError
from beaufort.corruptions import corruptions
from beaufort.data import Dataset, load_dataset, resized
from beaufort.data.protocols import Split, protocols
from beaufort.models.filters import load_filter
from beaufort.models.torch import choose_device
from beaufort.studies.failed_runs import task_result
from beaufort.studies.predictions import (
    CorruptedImages,
    StudyPredictions,
    correct_only,
    logits,
    read_test_images,
    write_predictions,
)
from beaufort.studies.study_file import Arm, StudySettings, parts_of
from beaufort.studies.study_tasks import StudyTask
from beaufort.training import Training, TrainingData, TrainingTensors, open_training_data, train
from beaufort.training.trained import FACTS

_FACTS = (
    *("recipe", "seed", "steps", "losses", "constant_loss", "seconds", "cpu_seconds"),
    *("device", "torch", "parameters", "replayed"),
)
"""Facts of a training run that are stored with its predictions."""


class TrainedArm(NamedTuple):
    """An arm and what is held out of its training, if anything."""

    arm: str
    split: str = ""

    @property
    def label(self) -> str:
        return f"{self.arm}@{self.split}" if self.split else self.arm


def wanted_arms(settings: StudySettings, only: Sequence[str]) -> dict[TrainedArm, int]:
    """Return the arms of some parts with the number of training runs of each; of all parts by default.

    Names of arms in `only` restrict the parts to these arms.
    """
    parts, arms = parts_of(settings), settings.arms
    chosen = [name for name in only if name in parts]
    named = {name for name in only if name in arms} or set(arms)
    wanted: dict[TrainedArm, int] = {}
    for name in chosen or [name for name, part in parts.items() if not part.get("optional")]:
        part = parts[name]
        seeds = min(settings.seeds, part.get("seeds", settings.seeds))
        splits = [split for one in part.get("splits", [""]) for split in _expand_split(settings, one)]
        matched = dict.fromkeys(arm for one in part.get("arms", ()) for arm in settings.matching([one]))
        for one in (TrainedArm(arm, split) for arm in matched if arm in named for split in splits):
            wanted[one] = max(seeds, wanted.get(one, 0))
    base = settings.file.get("base")
    return {TrainedArm(base): settings.seeds, **wanted} if base and wanted else wanted


def _expand_split(settings: StudySettings, split: str) -> list[str]:
    """Return a split; `style-*` stands for a split for each value of the column of `style`."""
    kind, star, _ = split.partition("-*")
    if not star:
        return [split]
    protocol = protocols[settings.file["splits"][kind]["protocol"]]
    values = sorted(set(load_dataset(settings.dataset("train")).column(protocol.column)))
    return [kind if value in protocol.values else f"{kind}-{value}" for value in values]


def training_tasks(settings: StudySettings, wanted: Mapping[TrainedArm, int]) -> list[StudyTask]:
    """Return the tasks of arms, given the number of training runs of each: all of one seed before the next.

    Networks that other arms start from or test are tasks of their own, before those that need them.
    """
    arms = settings.arms
    seeds = dict(wanted)
    for one, count in wanted.items():
        for needed in _needs(arms, one):
            seeds[needed] = max(count, seeds.get(needed, 0))
    tasks = []
    for seed in range(settings.seeds):
        chosen = [one for one in seeds if seed < seeds[one]]
        files = {one: _file(arms[one.arm], one, seed) for one in chosen}
        starts = dict.fromkeys(needed for one in chosen for needed in _needs(arms, one))
        made = {one: f"models/{one.label}-seed{seed}/{FACTS}" for one in starts}
        for one, file in made.items():
            serves = tuple(files[other] for other in chosen if one == other or one in _needs(arms, other))
            tasks.append(
                _task(
                    f"{_title(settings, one)}, seed {seed}, trained",
                    file,
                    "make_start",
                    settings,
                    one,
                    seed,
                    serves=serves,
                    after=(),
                )
            )
        for one in (one for one in chosen if one in wanted):
            needs = tuple(made[other] for other in (one, *_needs(arms, one)) if other in made)
            tasks.append(
                _task(
                    f"{_title(settings, one)}, seed {seed}",
                    files[one],
                    "make_arm",
                    settings,
                    one,
                    seed,
                    after=needs,
                )
            )
    return tasks


def _task(
    title: str, file: str, call: str, settings: StudySettings, one: TrainedArm, seed: int, **more: Any
) -> StudyTask:
    options = {"settings": settings, "arm": one.arm, "split": one.split, "seed": seed}
    return StudyTask(title, file, f"{__name__}:{call}", options, **more)


def _needs(arms: Mapping[str, Arm], one: TrainedArm) -> list[TrainedArm]:
    """Return the arms whose networks an arm starts from or tests, the first one last."""
    other = arms[one.arm].start or arms[one.arm].tests
    return [*_needs(arms, found), found] if other and (found := TrainedArm(other, one.split)) else []


def _file(arm: Arm, one: TrainedArm, seed: int) -> str:
    return f"{arm.folder}/{one.label}-seed{seed}.npz"


def _title(settings: StudySettings, one: TrainedArm) -> str:
    title = settings.arms[one.arm].title or one.arm.replace("-", " ")
    return f"{title} without {split_title(settings, one.split)}" if one.split else title


def split_title(settings: StudySettings, split: str) -> str:
    """Return what a split holds out."""
    declared = settings.file["splits"]
    return (
        str(declared[split]["title"])
        if split in declared
        else f"{split.partition('-')[2]}'s {split.partition('-')[0]}"
    )


def make_arm(
    folder: Path, deadline: float | None, *, settings: StudySettings, arm: str, split: str, seed: int
) -> bool | str:
    """Train an arm, unless it tests another's network, and evaluate it."""
    one, start = settings.arms[arm], time.monotonic()
    made = _train(settings, TrainedArm(one.tests or arm, split), folder, seed, deadline)
    if made is None:
        return False
    facts = {key: made.facts[key] for key in _FACTS if key in made.facts}
    facts |= {"filter": one.filter} if one.filter else {}
    for label, found in _predict(settings, one, split, made.model, facts):
        found.facts["prediction_seconds"] = round(time.monotonic() - start, 1)
        write_predictions(folder / one.folder / f"{arm}{'@' * bool(label)}{label}-seed{seed}.npz", found)
    kept = any(fnmatchcase(arm, one) for one in settings.file.get("keep", ()))
    if not kept and not _is_needed(settings, one.tests or arm):
        shutil.rmtree(made.folder)
    result = True if one.tests else task_result(made.facts)
    del made
    _free_memory()
    return result


def make_start(
    folder: Path, deadline: float | None, *, settings: StudySettings, arm: str, split: str, seed: int
) -> bool | str:
    """Train a network that arms start from or test, and keep it."""
    made = _train(settings, TrainedArm(arm, split), folder, seed, deadline)
    result = False if made is None else task_result(made.facts)
    del made
    _free_memory()
    return result


def _is_needed(settings: StudySettings, arm: str) -> bool:
    return any(arm in (one.start, one.tests) for one in settings.arms.values())


def _train(
    settings: StudySettings, one: TrainedArm, folder: Path, seed: int, deadline: float | None
) -> Training | None:
    """Return an arm's network, trained with the one that it starts from if missing; None if time is up."""
    arm, start = settings.arms[one.arm], ""
    if arm.start:
        before = _train(settings, TrainedArm(arm.start, one.split), folder, seed, deadline)
        if before is None:
            return None
        start = str(before.folder)
    made = train(
        arm.configured(settings, start),
        training_images(settings, one.split),
        output=folder / "models" / f"{one.label}-seed{seed}",
        seed=seed,
        device=settings.device,
        deadline=deadline,
    )
    return made if made.finished else None


def _free_memory() -> None:
    """Free the GPU memory of a training run, which a recorded step keeps, for other processes."""
    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def _predict(
    settings: StudySettings, arm: Arm, split: str, model: nn.Module, facts: dict[str, Any]
) -> Iterator[tuple[str, StudyPredictions]]:
    """Yield the predictions of a network under all conditions, or on the images of a split."""
    how = settings.file.get("predict", {})
    model = model.eval().to(choose_device(settings.device))
    if split:
        train_on = training_images(settings, split)
        assert isinstance(train_on, TrainingTensors)
        about: dict[str, Any] = {
            "classes": list(train_on.classes),
            "trained_classes": sorted(set(train_on.labels.tolist())),
            "train_images": len(train_on),
        }
        for label, (held_out, ids) in held_out_images(settings, split).items():
            images = held_out.images.to(choose_device(settings.device))
            rows = logits(model, images, batch=how.get("batch")).argmax(1).to(torch.uint8).cpu().numpy()[None]
            known = {**facts, **about, **({"ids": list(ids)} if how.get("ids") else {})}
            labels = held_out.labels.cpu().numpy().astype(np.uint8)
            yield label, StudyPredictions((label,), rows, labels, known)
        return
    test = test_images(settings)
    if how.get("half"):
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    wanted = [name for name in settings.conditions(extra=arm.extra) if name in test.images]
    classes = []
    for views in _views(settings, arm.filter, wanted):
        each = [logits(model, view, batch=how.get("batch"), half=how.get("half", False)) for view in views]
        averaged = torch.stack([one.softmax(1) for one in each]).mean(0) if len(each) > 1 else each[0]
        classes.append(averaged.argmax(1))
    predicted = torch.stack(classes)
    if how.get("classes"):
        numbers, labels = (one.to(torch.uint8).cpu().numpy() for one in (predicted, test.labels))
        yield "", StudyPredictions(tuple(wanted), numbers, labels, facts)
    else:  # a third of the size of the classes
        yield "", correct_only(wanted, (predicted == test.labels).to(torch.uint8).cpu().numpy(), facts)


def _views(settings: StudySettings, image_filter: str, names: Sequence[str]) -> Iterator[list[Tensor]]:
    """Yield the views of the test images under each condition."""
    test = test_images(settings).images
    if image_filter and any(step.makes_views for step in load_filter(image_filter).steps):
        yield from (_apply(test[name], image_filter) for name in names)
    else:
        filtered = _filtered(settings, image_filter) if image_filter else test
        yield from ([filtered[name]] for name in names)


@lru_cache(maxsize=1)
def _filtered(settings: StudySettings, image_filter: str) -> dict[str, Tensor]:
    """Return the filtered test images; most filters run on the CPU, so it is done once for all networks."""
    return {name: _apply(images, image_filter)[0] for name, images in test_images(settings).images.items()}


def _apply(images: Tensor, image_filter: str) -> list[Tensor]:
    height, width = images.shape[2:]
    return load_filter(image_filter).apply_tensors(images, (height, width))


@lru_cache(maxsize=1)
def test_images(settings: StudySettings) -> CorruptedImages:
    """Return the test images under all conditions, with seed 0, as `beaufort run` evaluates them.

    A study may leave out corruptions whose files cannot be downloaded.
    """
    limit = settings.rehearsal.get("test")
    clean, labels, ids = read_test_images(settings.dataset("test"), device=settings.device, limit=limit)
    images = {settings.clean: clean}
    errors = (AssetError,) if settings.file.get("predict", {}).get("skip_missing") else ()
    for condition in settings.conditions()[1:]:
        name, _, severity = condition.partition("@")
        level = [int(severity)] if severity else []
        with suppress(*errors):
            images[condition] = corruptions[name](clean, *level, ids=ids, seed=0, scale=settings.scale)
    return CorruptedImages(images, labels)


@lru_cache(maxsize=2)
def training_images(settings: StudySettings, split: str = "") -> TrainingData:
    """Return the training images, without those that a split holds out."""
    if not split:
        return open_training_data(settings.dataset("train"), limit=settings.rehearsal.get("train"))
    dataset, images = _load_images(settings, _role(settings, split, "train"))
    places = _evenly_spaced(_split(settings, dataset, split).train, settings.rehearsal.get("train"))
    return _part(images, places, split)


@lru_cache(maxsize=1)
def held_out_images(
    settings: StudySettings, split: str
) -> dict[str, tuple[TrainingTensors, tuple[str, ...]]]:
    """Return the images that a split holds out, with their ids, and those that it does not, as `SPLIT-seen`.

    The latter exist if there is a test set; otherwise training uses them.
    """
    role = _role(settings, split, "test")
    dataset, images = _load_images(settings, role or _role(settings, split, "train"))
    chosen = _split(settings, dataset, split)
    found = {}
    for name, places in ((split, chosen.test), *([(f"{split}-seen", chosen.train)] if role else [])):
        places = _evenly_spaced(places, settings.rehearsal.get("test"))
        found[name] = _part(images, places, split), tuple(dataset.ids[place] for place in places)
    return found


def _role(settings: StudySettings, split: str, part: str) -> str:
    """Return the name of the dataset of a split, such as `coarse-test`; empty if it does not exist."""
    prefix = settings.file["splits"].get(split, {}).get("data", "")
    name = f"{prefix}-{part}" if prefix else part
    return name if settings.dataset(name) else ""


def _split(settings: StudySettings, dataset: Dataset, split: str) -> Split:
    declared = settings.file["splits"]
    if split in declared:
        return protocols[declared[split]["protocol"]].split(dataset)
    kind, _, value = split.partition("-")  # one of several values, such as `style-google`
    return protocols[declared[kind]["protocol"]].split(dataset, held_out=value)


@lru_cache(maxsize=2)
def _load_images(settings: StudySettings, role: str) -> tuple[Dataset, TrainingTensors]:
    dataset = resized(load_dataset(settings.dataset(role)), settings.file["side"])
    tensors = open_training_data(dataset)
    assert isinstance(tensors, TrainingTensors)  # images of splits are small
    return dataset, tensors


def _part(images: TrainingTensors, places: Any, split: str) -> TrainingTensors:
    index: Any = torch.from_numpy(places)
    name = f"{images.name}/{split}"
    return TrainingTensors(name, images.classes, images.images[index], images.labels[index], images.digest)


def _evenly_spaced(places: Any, limit: int | None) -> Any:
    if limit is None or len(places) <= limit:
        return places
    return places[np.arange(limit) * len(places) // limit]

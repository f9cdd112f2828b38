"""The tasks of the study: train a network without the held-out icons, and evaluate it on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.data import Dataset, load_dataset, resized
from beaufort.data.protocols import Split, protocols
from beaufort.models.torch import choose_device
from beaufort.studies.engine import PAGE, Study, StudyOptions, StudySettings, definition
from beaufort.studies.failed_runs import task_result
from beaufort.studies.predictions import StudyPredictions, logits, write_predictions
from beaufort.studies.study_tasks import StudyTask
from beaufort.training import Recipe, TrainingTensors, get_recipe, open_training_data, train

SPLITS: dict[str, str] = definition("icons-50")["splits"]
"""What is held out; each is the protocol `icons-50-NAME`. `style-VENDOR` holds out another vendor."""

PARTS = (*SPLITS, "shake", "shake-subtype", "shake-500", "others", "styles")
"""Values of `only`, beside names of networks."""

_LONGEST = "shake26-96d"
_FACTS = (
    *("recipe", "seed", "steps", "losses", "constant_loss", "seconds", "cpu_seconds"),
    *("device", "torch", "parameters", "replayed"),
)
_SIDE = 32
"""Pixels; the size of the paper's images, whatever the aspect of the original icon."""


class NetworkVariant(NamedTuple):
    """A recipe with changes, and the paper's accuracy by split."""

    title: str
    recipe: str
    changes: tuple[str, ...] = ()
    paper: Mapping[str, float] = MappingProxyType({})


def _variants(group: str) -> dict[str, NetworkVariant]:
    return {name: NetworkVariant(**one) for name, one in definition("icons-50")[group].items()}


NETWORKS, ARMS, OTHERS = map(_variants, ("networks", "arms", "others"))
VARIANTS = {**NETWORKS, **ARMS, **OTHERS}


@dataclass(frozen=True, kw_only=True)
class IconSettings(StudySettings):
    """Extent of the study, and its dataset."""

    data: str = "icons-50"

    def recipe(self, name: str) -> Recipe:
        """Return the recipe of a variant; a rehearsal has small networks."""
        variant = VARIANTS[name]
        recipe = get_recipe(variant.recipe).changed(variant.changes)
        small = definition("icons-50")["rehearsal"][variant.recipe]
        return recipe.changed((*small, "epochs=1", "batch=16")) if self.rehearse else recipe


def held_out_title(split: str) -> str:
    """Return what a split holds out."""
    return SPLITS.get(split) or f"{split.removeprefix('style-')}'s style"


def plan(settings: IconSettings, only: Iterable[str] = ()) -> list[list[StudyTask]]:
    """Return the tasks in phases: the paper's table, arms about Shake-Shake, its 500 epochs, others."""
    chosen = tuple(only)
    parts = {part for part in chosen if part in PARTS} or set(PARTS) - {"traditional-released"}
    networks = {part for part in chosen if part in VARIANTS} or set(VARIANTS)
    planned: set[tuple[str, str]] = set()
    phases = []
    for phase in _phases(settings, parts):
        pairs = [pair for pair in dict.fromkeys(phase) if pair[0] in networks and pair not in planned]
        planned.update(pairs)
        phases.append([_task(*pair, seed, settings) for seed in range(settings.seeds) for pair in pairs])
    return phases


def _phases(settings: IconSettings, parts: set[str]) -> Iterator[list[tuple[str, str]]]:
    """Yield networks and splits; the longest runs come first, so that processes end together."""
    table = ("resnext29", "msdnet", "densenet40", "resnet20")
    yield [(name, split) for name in table for split in SPLITS if split in parts]
    splits = [split for split, part in (("style", "shake"), ("subtype", "shake-subtype")) if part in parts]
    yield [(name, split) for split in splits for name in reversed(ARMS)]
    yield [(_LONGEST, split) for split in ("style", "subtype", "subtype-released") if "shake-500" in parts]
    others = [(name, split) for name in OTHERS for split in ("style", "subtype") if "others" in parts]
    if "styles" in parts:
        vendors = sorted(set(load_dataset(settings.data).column("style")))
        splits = ["style" if vendor == "microsoft" else f"style-{vendor}" for vendor in vendors]
        others += [(name, split) for name in definition("icons-50")["every_style"] for split in splits]
    yield others


def _task(name: str, split: str, seed: int, settings: IconSettings) -> StudyTask:
    return StudyTask(
        f"{VARIANTS[name].title} without {held_out_title(split)}, seed {seed}",
        f"predictions/{name}@{split}-seed{seed}.npz",
        f"{__name__}:make_model",
        {"settings": settings, "name": name, "split": split, "seed": seed},
    )


def make_model(
    folder: Path, deadline: float | None, *, settings: IconSettings, name: str, split: str, seed: int
) -> bool | str:
    """Train a network without the held-out icons, and evaluate it on them in float32."""
    icons = split_icons(settings, split)
    label = f"{name}@{split}-seed{seed}"
    made = train(
        settings.recipe(name),
        icons.train,
        output=folder / "models" / label,
        seed=seed,
        device=settings.device,
        deadline=deadline,
    )
    if not made.finished:
        return False
    where = choose_device(settings.device)
    images, labels = icons.test.images.to(where), icons.test.labels.cpu().numpy()
    predicted = logits(made.model.to(where).eval(), images, batch=500).argmax(1)
    facts: dict[str, Any] = {
        **{key: made.facts[key] for key in _FACTS if key in made.facts},
        "classes": list(icons.train.classes),
        "trained_classes": sorted(set(icons.train.labels.tolist())),
        "train_icons": len(icons.train),
        "ids": list(icons.ids),
    }
    rows = predicted.to(torch.uint8).cpu().numpy()[None]
    predictions = StudyPredictions((split,), rows, labels.astype("uint8"), facts)
    write_predictions(folder / "predictions" / f"{label}.npz", predictions)
    return task_result(made.facts)


@dataclass(frozen=True, eq=False)
class SplitIcons:
    """The icons of a split: the training set, the held-out icons, and their ids."""

    train: TrainingTensors
    test: TrainingTensors
    ids: tuple[str, ...]


@lru_cache(maxsize=1)
def _load_icons(data: str) -> tuple[Dataset, TrainingTensors]:
    dataset = resized(load_dataset(data), _SIDE)
    tensors = open_training_data(dataset)
    assert isinstance(tensors, TrainingTensors)  # 10,000 icons are 30 MB
    return dataset, tensors


@lru_cache(maxsize=1)
def split_icons(settings: IconSettings, split: str) -> SplitIcons:
    """Return the icons of a split: one of `SPLITS`, or `style-VENDOR`."""
    dataset, icons = _load_icons(settings.data)
    chosen = _split(dataset, split)
    limits = (48, 40) if settings.rehearse else (None, None)
    train, test = map(_evenly_spaced, (chosen.train, chosen.test), limits)

    def part(places: NDArray[np.int64]) -> TrainingTensors:
        index: Any = torch.from_numpy(places)
        name = f"{icons.name}/{split}"
        return TrainingTensors(name, icons.classes, icons.images[index], icons.labels[index], icons.digest)

    return SplitIcons(part(train), part(test), tuple(dataset.ids[place] for place in test))


def _split(dataset: Dataset, split: str) -> Split:
    if split in SPLITS:
        return protocols[f"icons-50-{split}"].split(dataset)
    return protocols["icons-50-style"].split(dataset, held_out=split.removeprefix("style-"))


def _evenly_spaced(places: NDArray[np.int64], limit: int | None) -> NDArray[np.int64]:
    if limit is None or len(places) <= limit:
        return places
    return places[np.arange(limit) * len(places) // limit]


def _plan(options: StudyOptions) -> list[list[StudyTask]]:
    if "icons-50" not in options.data:
        raise OptionError(
            "Icons-50 cannot be downloaded, because most of its artwork must not be redistributed; add "
            "--data icons-50=PATH with its directory, archive or .npz file"
        )
    data = f"icons-50:{options.data['icons-50']}"
    return plan(options.settings(IconSettings, data=data), options.parts)


def _files(folder: Path, options: StudyOptions) -> Iterator[tuple[str, bytes]]:
    from beaufort.studies.icons_50.icon_pages import study_files

    examples = Path(options.data["icons-open"]) if "icons-open" in options.data else None
    return study_files(folder, rehearse=options.rehearse, examples_from=examples)


STUDY = Study(
    name="icons-50",
    parts=(*PARTS, PAGE, *VARIANTS),
    data=("icons-50", "icons-open"),
    plan=_plan,
    files=_files,
)

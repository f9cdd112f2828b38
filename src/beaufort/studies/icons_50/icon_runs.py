"""The tasks of the study: train a network without what is held out, and evaluate it on that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.data import Dataset, load_dataset, resized
from beaufort.data.protocols import Split, protocols
from beaufort.models.torch import choose_device
from beaufort.studies.engine import PAGE, Study, StudyOptions
from beaufort.studies.failed_runs import task_result
from beaufort.studies.icons_50.icon_networks import (
    ARMS,
    NETWORKS,
    OTHERS,
    SPLITS,
    STYLES_BY,
    VARIANTS,
    IconSettings,
    held_out_title,
    style_split,
)
from beaufort.studies.predictions import StudyPredictions, logits, write_predictions
from beaufort.studies.study_tasks import StudyTask
from beaufort.training import TrainingTensors, open_training_data, train

_LONG = "shake26-96d"
"""The one whose 500 epochs take longer than all others together."""
_TABLE = ("style", "subtype", "subtype-released", "traditional")
PARTS = (*SPLITS, "shake", "shake-subtype", "shake-500", "others", "styles")
"""What can be asked for alone, also together with names of networks."""
_KEPT = (
    *("recipe", "seed", "steps", "losses", "constant_loss", "seconds", "cpu_seconds"),
    *("device", "torch", "parameters", "replayed"),
)
_BATCH = 500


def plan(settings: IconSettings, only: Iterable[str] = ()) -> list[list[StudyTask]]:
    """What there is to do, in phases: the table, the question about Shake-Shake, its 500 epochs, the rest."""
    chosen = tuple(only)
    parts = {part for part in chosen if part in PARTS} or {*_TABLE, *PARTS} - {"traditional-released"}
    networks = {part for part in chosen if part in VARIANTS} or set(VARIANTS)
    planned: set[tuple[str, str]] = set()
    phases = []
    for phase in _phases(settings, parts):
        pairs = [pair for pair in dict.fromkeys(phase) if pair[0] in networks and pair not in planned]
        planned.update(pairs)
        phases.append([_task(*pair, seed, settings) for seed in range(settings.seeds) for pair in pairs])
    return phases


def _phases(settings: IconSettings, parts: set[str]) -> list[list[tuple[str, str]]]:
    """Networks and splits. What takes longest comes first, so that processes end together."""
    quick = [name for name in ("resnext29", "msdnet", "densenet40", "resnet20") if name != _LONG]
    assert {*quick, _LONG} == set(NETWORKS)
    table = [(name, split) for name in quick for split in SPLITS if split in parts]
    arms = [(name, "style") for name in reversed(ARMS)] * ("shake" in parts)
    arms += [(name, "subtype") for name in reversed(ARMS)] * ("shake-subtype" in parts)
    long = [(_LONG, split) for split in _TABLE[:3]] * ("shake-500" in parts)
    others = [(name, split) for name in OTHERS for split in ("style", "subtype")] * ("others" in parts)
    if "styles" in parts:
        splits = [style_split(vendor) for vendor in style_names(settings)]
        others += [(name, split) for name in STYLES_BY for split in splits]
    return [table, arms, long, others]


def _task(name: str, split: str, seed: int, settings: IconSettings) -> StudyTask:
    return StudyTask(
        f"{VARIANTS[name].title} without {held_out_title(split)}, seed {seed}",
        f"answers/{name}@{split}-seed{seed}.npz",
        "beaufort.studies.icons_50.icon_runs:make_model",
        {"settings": settings, "name": name, "split": split, "seed": seed},
    )


def make_model(
    folder: Path, deadline: float | None, *, settings: IconSettings, name: str, split: str, seed: int
) -> bool | str:
    """Train a network without the icons that are held out, and evaluate it on them."""
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
    facts = {key: made.facts[key] for key in _KEPT if key in made.facts}
    found = _predict(made.model, icons, split, facts, settings.device)
    write_predictions(folder / "answers" / f"{label}.npz", found)
    return task_result(made.facts)


def _predict(
    model: torch.nn.Module, icons: SplitIcons, split: str, facts: dict[str, Any], device: str
) -> StudyPredictions:
    """Return a network's predictions for held-out icons, in float32, with what tables need to know."""
    where = choose_device(device)
    model = model.to(where).eval()
    images, labels = icons.test.images.to(where), icons.test.labels.cpu().numpy()
    found = logits(model, images, batch=_BATCH).argmax(1).to(torch.uint8).cpu().numpy()
    facts = {
        **facts,
        "classes": list(icons.train.classes),
        "trained_classes": sorted(set(icons.train.labels.tolist())),
        "train_icons": len(icons.train),
        "ids": list(icons.ids),
    }
    return StudyPredictions((split,), found[None], labels.astype("uint8"), facts)


_SIDE = 32
"""Pixels; the paper's networks see icons of this size, whatever their aspect was."""


@dataclass(frozen=True, eq=False)
class SplitIcons:
    """The icons of a split: what to train on, and what to evaluate on."""

    train: TrainingTensors
    test: TrainingTensors
    ids: tuple[str, ...]
    """Of the held-out icons: `bird/microsoft_0_duck.png`."""


@lru_cache(maxsize=1)
def _all(data: str) -> tuple[Dataset, TrainingTensors]:
    dataset = resized(load_dataset(data), _SIDE)
    found = open_training_data(dataset)
    assert isinstance(found, TrainingTensors)  # 10,000 icons are 30 MB
    return dataset, found


@lru_cache(maxsize=1)
def split_icons(settings: IconSettings, split: str) -> SplitIcons:
    """The icons of a split by its name: one of `SPLITS`, or `style-VENDOR`."""
    dataset, every = _all(settings.data)
    chosen = _split(dataset, split)
    train, test = _some(chosen.train, settings.train_limit), _some(chosen.test, settings.test_limit)
    return SplitIcons(
        _part(every, train, split), _part(every, test, split), tuple(dataset.ids[place] for place in test)
    )


def style_names(settings: IconSettings) -> tuple[str, ...]:
    """The vendors."""
    return tuple(sorted(set(load_dataset(settings.data).column("style"))))


def _split(dataset: Dataset, split: str) -> Split:
    if split in SPLITS:
        return protocols[f"icons-50-{split}"].split(dataset)
    return protocols["icons-50-style"].split(dataset, held_out=split.removeprefix("style-"))


def _some(places: NDArray[np.int64], limit: int | None) -> NDArray[np.int64]:
    """So many of some numbers, evenly spread; all if None."""
    if limit is None or len(places) <= limit:
        return places
    return places[np.arange(limit) * len(places) // limit]


def _part(every: TrainingTensors, places: NDArray[np.int64], split: str) -> TrainingTensors:
    index: Any = torch.from_numpy(places)
    return TrainingTensors(
        f"{every.name}/{split}", every.classes, every.images[index], every.labels[index], every.digest
    )


def _plan(options: StudyOptions) -> list[list[StudyTask]]:
    if "icons-50" not in options.data:
        raise OptionError(
            "data must name the folder, archive or .npz file with Icons-50, which nobody may pass on; add "
            "--data icons-50=PATH"
        )
    place = f"icons-50:{options.data['icons-50']}"
    return plan(options.settings(IconSettings, data=place), options.parts)


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

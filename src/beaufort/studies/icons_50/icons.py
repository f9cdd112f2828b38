"""The icons of a split: what to train on, in one tensor, and what to ask about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from beaufort.data import Dataset, load_dataset, resized
from beaufort.data.protocols import Split, protocols
from beaufort.studies.icons_50.settings import SPLITS, IconSettings
from beaufort.training import TrainingTensors, open_training_data

_SIDE = 32
"""Pixels; the paper's networks see icons of this size, whatever their aspect was."""


@dataclass(frozen=True, eq=False)
class SplitIcons:
    """The icons of a split."""

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

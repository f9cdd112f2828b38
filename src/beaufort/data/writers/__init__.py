"""Sets of corrupted images on disk: a folder, a published data set, the gallery."""

from __future__ import annotations

from beaufort.data.writers.corrupt import corrupt_tree
from beaufort.data.writers.icons_open import make_icons_open
from beaufort.data.writers.make import DATASETS, make_dataset
from beaufort.data.writers.outcome import Failure, Outcome, Progress

__all__ = [
    "DATASETS",
    "Failure",
    "Outcome",
    "Progress",
    "corrupt_tree",
    "make_dataset",
    "make_icons_open",
]

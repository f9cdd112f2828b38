"""Sets of corrupted images on disk: a folder, a published data set, the gallery."""

from __future__ import annotations

from beaufort.image_sets.corrupt import corrupt_tree
from beaufort.image_sets.gallery import make_gallery
from beaufort.image_sets.icons_open import make_icons_open
from beaufort.image_sets.make import DATASETS, make_dataset
from beaufort.image_sets.outcome import Failure, Outcome, Progress

__all__ = [
    "DATASETS",
    "Failure",
    "Outcome",
    "Progress",
    "corrupt_tree",
    "make_dataset",
    "make_gallery",
    "make_icons_open",
]

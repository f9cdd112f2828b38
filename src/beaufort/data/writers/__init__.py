"""Writers of corrupted images: directories, published datasets and icons-open."""

from __future__ import annotations

from beaufort.data.writers.corrupt_folder import corrupt_tree
from beaufort.data.writers.icons_open import make_icons_open
from beaufort.data.writers.image_sources import prepare_image
from beaufort.data.writers.output_folder import Failure, Outcome, Progress
from beaufort.data.writers.published_sets import PUBLISHED_SETS, make_dataset
from beaufort.data.writers.variants import corruption_names

__all__ = [
    "PUBLISHED_SETS",
    "Failure",
    "Outcome",
    "Progress",
    "corrupt_tree",
    "corruption_names",
    "make_dataset",
    "make_icons_open",
    "prepare_image",
]

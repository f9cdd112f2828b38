"""Data sets: readers for what is on the disk, and those of the catalog by name."""

from __future__ import annotations

from beaufort.data import (  # noqa: F401
    _foolbox_files,
    _mnist_files,
    arrays,
    broad,
    cifar,
    films,
    folder,
    frames,
    huggingface,
    icons,
    imagenet_val,
    labels_csv,
    mined,
    mnist,
    natural,
    published,
    shards,
)
from beaufort.data._dataset import Dataset, Problem, Sample, Walk, iterate
from beaufort.data._open import kind_of, open_dataset
from beaufort.data._reader import Reader, readers
from beaufort.data.arrays import from_arrays
from beaufort.data.sizes import resized

__all__ = [
    "Dataset",
    "Problem",
    "Reader",
    "Sample",
    "Walk",
    "from_arrays",
    "iterate",
    "kind_of",
    "open_dataset",
    "readers",
    "resized",
]

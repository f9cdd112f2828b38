"""Data sets: readers for what is on the disk, and those of the catalog by name."""

from __future__ import annotations

from beaufort.datasets import (  # noqa: F401
    _foolbox_files,
    _mnist_files,
    arrays,
    folder,
    frames,
    huggingface,
    labels_csv,
    mnist,
    natural,
    published,
    shards,
)
from beaufort.datasets._dataset import Dataset, Problem, Sample, Walk, iterate
from beaufort.datasets._open import open_dataset
from beaufort.datasets._reader import Reader, readers
from beaufort.datasets.arrays import from_arrays

__all__ = [
    "Dataset",
    "Problem",
    "Reader",
    "Sample",
    "Walk",
    "from_arrays",
    "iterate",
    "open_dataset",
    "readers",
]

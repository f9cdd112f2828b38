"""Named selections of images, on which benchmarks are evaluated instead of on a complete dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import PurePosixPath

import numpy as np

from beaufort._core.registry import Registry
from beaufort.data._checks import check_none_missing
from beaufort.data._dataset import Dataset


@dataclass(frozen=True)
class ImageSelection:
    """A list of images of a dataset by file name, without directory and extension."""

    name: str
    about: str
    read: Callable[[], frozenset[str]]

    @cached_property
    def stems(self) -> frozenset[str]:
        """File names of the images, without directory and extension."""
        return self.read()

    def select(self, dataset: Dataset) -> Dataset:
        """Return the selected images of a dataset in its order; an `ImageFileError` if some are missing."""
        stems = [PurePosixPath(id).stem for id in dataset.ids]
        missing = sorted(self.stems.difference(stems))
        check_none_missing(f"images of {self.name} in {dataset.name}", missing, len(self.stems))
        chosen = [index for index, stem in enumerate(stems) if stem in self.stems]
        return dataset.select(np.array(chosen, np.int64))


selections: Registry[ImageSelection] = Registry("selection of images")
"""Published selections by name."""


def _robustbench_images() -> frozenset[str]:
    text = (files("beaufort.data") / "selections" / "robustbench-imagenet.txt").read_text(encoding="utf-8")
    numbers = " ".join(line for line in text.splitlines() if not line.startswith("#")).split()
    return frozenset(f"ILSVRC2012_val_{int(number):08d}" for number in numbers)


selections.register(
    "robustbench-imagenet",
    ImageSelection(
        "robustbench-imagenet",
        "the 5,000 validation images of ImageNet on which RobustBench evaluates",
        _robustbench_images,
    ),
)

"""Datasets with other labels: superclasses of CIFAR-100 and ImageNet, and the classes of a label map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data._checks import check_none_missing
from beaufort.data._dataset import Dataset
from beaufort.data._reader import reader
from beaufort.data.cifar import open_cifar
from beaufort.data.folder import open_class_folders
from beaufort.data.labels import (
    DatasetLabels,
    LabelError,
    LabelMap,
    ModelOutputs,
    class_names,
    find_label_space,
    superclasses,
)

_COARSE, _IMAGENET_25 = "cifar-100-coarse", "imagenet-25"


@reader(_COARSE, "CIFAR-100 as downloaded, labeled with its 20 superclasses", parts=("test", "train"))
def open_coarse_cifar(location: str, part: str) -> Dataset:
    """Open one split, `test` by default; the column `subtype` has the 100 classes."""
    found = open_cifar(location, part)
    if found.classes != class_names("cifar-100"):
        raise ImageFileError(f"{_COARSE} requires CIFAR-100, but {location} is CIFAR-10")
    label_of = {name: label for label, one in enumerate(superclasses(_COARSE)) for name in one.members}
    return _with_superclasses(found, label_of, _COARSE)


@reader(_IMAGENET_25, "directories of ImageNet, named by WordNet id, labeled with 25 superclasses")
def open_imagenet_25(location: str, part: str) -> Dataset:
    """Open the images of the 5,559 synsets of 25 superclasses, with the columns `subtype`, an id, and `part`.

    `part` is `seen` for classes of ImageNet-1k and `unseen` for others. Other directories are omitted.
    """
    every = open_class_folders(Path(location), Path(location).name)
    known = superclasses(_IMAGENET_25)
    label_of = {id: label for label, one in enumerate(known) for id in one.members + one.others}
    seen = {id for one in known for id in one.members}
    found = _with_superclasses(every, label_of, _IMAGENET_25)
    parts = {id: "seen" if one in seen else "unseen" for id, one in found.columns["subtype"].items()}
    return replace(found, columns={**found.columns, "part": parts})


def _with_superclasses(every: Dataset, label_of: Mapping[str, int], space: str) -> Dataset:
    chosen = every.relabeled(class_names(space), label_of)
    if not len(chosen):
        raise ImageFileError(f"{every.name} has no images of classes of {space}")
    classes = dict(zip(every.ids, every.column("class"), strict=True))
    return replace(chosen, columns={"subtype": {id: classes[id] for id in chosen.ids}})


_IMAGENET = "imagenet-1k"


def select_classes(dataset: Dataset, wanted: LabelMap) -> Dataset:
    """Return the images of ImageNet that belong to a class of a label map, with that class as their label.

    A missing class of ImageNet is an error: the accuracy over fewer classes is another number.
    """
    numbers = _imagenet_numbers(dataset)
    _check_classes(dataset, numbers, sorted(wanted.class_of), wanted.name)
    labels = np.array([wanted.class_of.get(number, -1) for number in numbers], np.int64)
    kept: NDArray[np.int64] = np.flatnonzero(labels >= 0).astype(np.int64)
    return replace(dataset.select(kept), classes=wanted.classes, labels=labels[kept], by_name=True)


def check_all_imagenet_classes(dataset: Dataset) -> None:
    """Raise an error if a class of ImageNet has no images."""
    _check_classes(dataset, _imagenet_numbers(dataset), range(1000), _IMAGENET)


def _check_classes(dataset: Dataset, numbers: NDArray[np.int64], wanted: Sequence[int], name: str) -> None:
    present = set(numbers.tolist())
    missing = [class_names(_IMAGENET)[number] for number in wanted if number not in present]
    check_none_missing(
        f"classes of {name} in {dataset.name}",
        missing,
        len(wanted),
        hint="; pass the complete validation set",
        error=OptionError,
    )


def _imagenet_numbers(dataset: Dataset) -> NDArray[np.int64]:
    """Return the class number in ImageNet of each image."""
    used = np.unique(dataset.labels)
    data = DatasetLabels(dataset.name, dataset.classes, used, dataset.by_name)
    outputs = ModelOutputs(_IMAGENET, 1000, class_names(_IMAGENET), _IMAGENET)
    try:
        space = find_label_space(data, outputs)
    except LabelError as error:
        raise OptionError(f"{dataset.name} is not labeled with classes of ImageNet: {error.reason}") from None
    if space.outputs is None:
        return dataset.labels
    numbers = np.array([outputs[0] if outputs else -1 for outputs in space.outputs], np.int64)
    found: NDArray[np.int64] = numbers[dataset.labels]
    return found

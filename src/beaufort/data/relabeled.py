"""Pictures labeled with broad classes, the narrow ones beside them as a column: CIFAR-100 and ImageNet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError, OptionError
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


@reader(_COARSE, "CIFAR-100 as downloaded, labeled with its 20 broad classes", parts=("test", "train"))
def open_coarse_cifar(location: str, part: str) -> Dataset:
    """One split of CIFAR-100, `test` if none is named, with its 100 classes as the column `subtype`."""
    found = open_cifar(location, part)
    if found.classes != class_names("cifar-100"):
        raise ImageFileError(f"{_COARSE} must be made of CIFAR-100, got CIFAR-10 in {location}")
    broad = {name: place for place, one in enumerate(superclasses(_COARSE)) for name in one.members}
    return _broad(found, broad, _COARSE)


@reader(_IMAGENET_25, "folders of ImageNet, called by WordNet id, labeled with 25 broad classes")
def open_imagenet_25(location: str, part: str) -> Dataset:
    """Pictures of the 5,559 synsets of 25 broad classes; columns are `subtype`, an id, and `part`.

    Other folders are left out. `part` is `seen` for classes of ImageNet-1k and `unseen` for others.
    """
    every = open_class_folders(Path(location), Path(location).name)
    broad = {
        id: place for place, one in enumerate(superclasses(_IMAGENET_25)) for id in one.members + one.others
    }
    seen = {id for one in superclasses(_IMAGENET_25) for id in one.members}
    found = _broad(every, broad, _IMAGENET_25)
    parts = {id: "seen" if one in seen else "unseen" for id, one in found.columns["subtype"].items()}
    return replace(found, columns={**found.columns, "part": parts})


def _broad(every: Dataset, place: Mapping[str, int], space: str) -> Dataset:
    """The pictures whose class belongs to a broad one, labeled with it."""
    chosen = every.relabeled(class_names(space), place)
    if not len(chosen):
        raise ImageFileError(f"{every.name} must have pictures of classes of {space}, got none")
    narrow = dict(zip(every.ids, every.column("class"), strict=True))
    return replace(chosen, columns={"subtype": {id: narrow[id] for id in chosen.ids}})


_IMAGENET = "imagenet-1k"


def select_classes(dataset: Dataset, wanted: LabelMap) -> Dataset:
    """Images of ImageNet that belong to a class of a label map, with that class as their label.

    A class of the map that has members in ImageNet and no images here is an error: an accuracy over fewer
    classes is another number.
    """
    numbers = _imagenet_numbers(dataset)
    labels = np.array([wanted.class_of.get(number, -1) for number in numbers], np.int64)
    places: NDArray[np.int64] = np.flatnonzero(labels >= 0).astype(np.int64)
    there = set(numbers.tolist())
    lost = [number for number in sorted(wanted.class_of) if number not in there]
    if lost:
        raise OptionError(
            f"{dataset.name} must have images of all {len(wanted.class_of)} classes of {wanted.name}, got "
            f"none of {len(lost)} (first: {class_names(_IMAGENET)[lost[0]]}); give the whole validation set"
        )
    return replace(dataset.select(places), classes=wanted.classes, labels=labels[places], by_name=True)


def _imagenet_numbers(dataset: Dataset) -> NDArray[np.int64]:
    """For each image the number of its class among ImageNet's."""
    used = np.unique(dataset.labels)
    data = DatasetLabels(dataset.name, dataset.classes, used, dataset.by_name)
    outputs = ModelOutputs(_IMAGENET, 1000, class_names(_IMAGENET), _IMAGENET)
    try:
        space = find_label_space(data, outputs)
    except LabelError as error:
        raise OptionError(
            f"{dataset.name} must be labeled with classes of ImageNet: {error.reason}"
        ) from None
    if space.outputs is None:
        return dataset.labels
    numbers = np.array([outputs[0] if outputs else -1 for outputs in space.outputs], np.int64)
    found: NDArray[np.int64] = numbers[dataset.labels]
    return found

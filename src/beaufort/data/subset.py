"""The images of some classes of ImageNet, labeled with the classes of another data set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.data._dataset import Dataset
from beaufort.data.labels import DataLabels, LabelError, LabelMap, Outputs, class_names, find_space

_IMAGENET = "imagenet-1k"


def of_classes(dataset: Dataset, wanted: LabelMap) -> Dataset:
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
    return replace(dataset.at(places), classes=wanted.classes, labels=labels[places], by_name=True)


def _imagenet_numbers(dataset: Dataset) -> NDArray[np.int64]:
    """For each image the number of its class among ImageNet's."""
    used = np.unique(dataset.labels)
    data = DataLabels(dataset.name, dataset.classes, used, dataset.by_name)
    outputs = Outputs(_IMAGENET, 1000, class_names(_IMAGENET), _IMAGENET)
    try:
        space = find_space(data, outputs)
    except LabelError as error:
        raise OptionError(
            f"{dataset.name} must be labeled with classes of ImageNet: {error.reason}"
        ) from None
    if space.outputs is None:
        return dataset.labels
    numbers = np.array([outputs[0] if outputs else -1 for outputs in space.outputs], np.int64)
    found: NDArray[np.int64] = numbers[dataset.labels]
    return found

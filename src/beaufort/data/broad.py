"""Pictures labeled with broad classes, the narrow ones beside them as a column: CIFAR-100 and ImageNet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data._dataset import Dataset
from beaufort.data._reader import reader
from beaufort.data.cifar import open_cifar
from beaufort.data.folder import open_class_folders
from beaufort.data.labels import broad_classes, class_names

_COARSE, _IMAGENET = "cifar-100-coarse", "imagenet-25"


def _never(path: Path) -> bool:
    """Which classes are meant must be said."""
    return False


@reader(_COARSE, "CIFAR-100 as downloaded, labeled with its 20 broad classes", _never)
def open_coarse_cifar(location: str, part: str) -> Dataset:
    """One split of CIFAR-100, `test` if none is named, with its 100 classes as the column `subtype`."""
    found = open_cifar(location, part)
    if found.classes != class_names("cifar-100"):
        raise ImageFileError(f"{_COARSE} must be made of CIFAR-100, got CIFAR-10 in {location}")
    broad = {name: place for place, one in enumerate(broad_classes(_COARSE)) for name in one.members}
    return _broad(found, broad, _COARSE)


@reader(_IMAGENET, "folders of ImageNet, called by WordNet id, labeled with 25 broad classes", _never)
def open_imagenet_25(location: str, part: str) -> Dataset:
    """Pictures of the 5,559 synsets of 25 broad classes; columns are `subtype`, an id, and `part`.

    Other folders are left out. `part` is `seen` for classes of ImageNet-1k and `unseen` for others.
    """
    if part:
        raise OptionError(f"{_IMAGENET} must be given without a part, got {part!r}")
    every = open_class_folders(Path(location), Path(location).name)
    broad = {
        id: place for place, one in enumerate(broad_classes(_IMAGENET)) for id in one.members + one.others
    }
    seen = {id for one in broad_classes(_IMAGENET) for id in one.members}
    found = _broad(every, broad, _IMAGENET)
    parts = {id: "seen" if one in seen else "unseen" for id, one in found.columns["subtype"].items()}
    return replace(found, columns={**found.columns, "part": parts})


def _broad(every: Dataset, place: Mapping[str, int], space: str) -> Dataset:
    """The pictures whose class belongs to a broad one, labeled with it."""
    numbers = np.array([place.get(name, -1) for name in every.classes], np.int64)
    kept = np.flatnonzero(numbers[every.labels] >= 0).astype(np.int64)
    if not len(kept):
        raise ImageFileError(f"{every.name} must have pictures of classes of {space}, got none")
    chosen = every.at(kept)
    narrow = dict(zip(chosen.ids, chosen.column("class"), strict=True))
    return replace(
        chosen,
        classes=class_names(space),
        labels=numbers[chosen.labels],
        by_name=True,
        columns={"subtype": narrow},
    )

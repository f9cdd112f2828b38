"""A few pictures, with labels if they have any, to look at a model with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes
from beaufort.datasets._npy import in_npz, pixels_in
from beaufort.errors import ImageFileError, OptionError
from beaufort.images import flatten, is_picture_name, read_image
from beaufort.models import ModelSpec

__all__ = ["Samples", "read_samples"]


@dataclass(frozen=True)
class Samples:
    """Pictures `(n, h, w, c)`, if there are any, and the class of each, if it is known."""

    images: Bytes | None
    labels: NDArray[np.int64] | None


def read_samples(path: Path, spec: ModelSpec, *, limit: int = 200) -> Samples:
    """Up to `limit` pictures, evenly spread over those that there are.

    Args:
        path: an `.npz` file with `images` (uint8, `(n, h, w, c)`) and perhaps `labels`; a folder with a
            folder a class, named by the class's number or name or, if there are as many as classes, in
            their order; or a folder of pictures of unknown classes.
        spec: the model's, which knows the classes and the size.
        limit: the most pictures to read.
    """
    if limit < 1:
        raise OptionError(f"limit {limit} came; accepted is a number from 1")
    if path.is_dir():
        return _from_folder(path, spec, limit)
    if path.suffix == ".npz":
        return _from_arrays(path, limit)
    raise ImageFileError(f"{path} is neither a folder nor an .npz file of images and labels")


def _from_arrays(path: Path, limit: int) -> Samples:
    arrays = in_npz(path)
    if "images" not in arrays:
        raise ImageFileError(
            f"{path} must be an .npz file with an array `images`; it has {', '.join(arrays)}"
        )
    pixels, count = pixels_in(arrays["images"])
    chosen = _spread(count, limit)
    images = np.stack([pixels.read(int(index)) for index in chosen])
    if "labels" not in arrays:
        return Samples(images, None)
    return Samples(images, arrays["labels"].labels(count)[chosen])


def _from_folder(path: Path, spec: ModelSpec, limit: int) -> Samples:
    folders = sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))
    classes = _numbers([folder.name for folder in folders], spec) if folders else {}
    found = [
        (file, classes.get(folder.name))
        for folder in folders or [path]
        for file in sorted(folder.iterdir())
        if is_picture_name(file.name)
    ]
    if not found:
        raise ImageFileError(f"there is no picture in {path} or in a folder of it")
    chosen = [found[place] for place in _spread(len(found), limit)]
    pictures = [np.atleast_3d(np.asarray(flatten(read_image(file)))) for file, _ in chosen]
    images = [spec.preprocessing.fit(picture[None])[0] for picture in pictures]
    if len({image.shape for image in images}) > 1:
        raise ImageFileError(
            f"the pictures in {path} have several sizes, and {spec.name} does not say its input size; "
            "load it with input_size="
        )
    labels = [label for _, label in chosen if label is not None]
    return Samples(np.stack(images), np.array(labels, np.int64) if labels else None)


def _numbers(names: list[str], spec: ModelSpec) -> dict[str, int]:
    if all(name.isdecimal() for name in names):
        return {name: int(name) for name in names}
    if spec.class_names is not None and set(names) <= set(spec.class_names):
        return {name: spec.class_names.index(name) for name in names}
    if len(names) == spec.classes:
        return {name: number for number, name in enumerate(names)}
    raise OptionError(
        f"{len(names)} folders came for a model of {spec.classes} classes; name each by the number or name "
        "of its class, or have as many as there are classes, in their order"
    )


def _spread(count: int, limit: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, count - 1, min(count, limit)).round().astype(np.int64))

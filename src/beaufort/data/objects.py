"""Conversion of paths, names, arrays, tensors and torch datasets to datasets."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, ImageFileError, OptionError
from beaufort._core.validation import validate_count
from beaufort.data._dataset import Dataset, numbered
from beaufort.data._digest import Content
from beaufort.data._load import DatasetSpec, load_dataset
from beaufort.data._rows import RowIds, validate_image_shape, validate_labels
from beaufort.data.images import flatten, plain_mode
from beaufort.data.numpy_files import from_arrays


class Items(Protocol):
    """Items `(image, label)` by index, as in a torch `Dataset`."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class Loader(Protocol):
    """An object with a dataset, such as a torch `DataLoader`."""

    @property
    def dataset(self) -> Any: ...


DataSource: TypeAlias = Dataset | DatasetSpec | str | os.PathLike[str] | Items | Loader
"""A `Dataset`, a spec for `load_dataset`, `(images, labels)`, a torch `Dataset` or `DataLoader`."""
Data: TypeAlias = DataSource | Mapping[str, DataSource]
"""One dataset, or several by the names of the parts of a suite."""
_DATA = (
    "data must be a path or a name (`beaufort ls datasets` lists names), (images, labels), a torch Dataset "
    "or DataLoader, or a Dataset of Beaufort"
)
_FORMS = "uint8, or floats from 0 to 1 (normalization belongs to the model)"


def as_dataset(data: DataSource, *, strict: bool = False) -> Dataset:
    """Return data in any supported form as a dataset."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str | os.PathLike | DatasetSpec):
        return load_dataset(data if isinstance(data, DatasetSpec) else str(data), strict=strict)
    if isinstance(data, tuple | list):
        if len(data) != 2:
            raise OptionError(f"{_DATA}, got {describe_object(data)}")
        return _dataset_of_pair(*data)
    items: object = data.dataset if _is_loader(data) else data
    indexable = hasattr(items, "__getitem__") and hasattr(items, "__len__")
    array_like = hasattr(items, "dtype") or hasattr(items, "dtypes")  # an array, a tensor, a data frame
    if isinstance(items, Mapping) or array_like or not indexable:
        hint = "; collect it into (images, labels)" if hasattr(items, "__iter__") else ""
        raise OptionError(f"{_DATA}, got {describe_object(items)}{hint}")
    return _dataset_of_items(items, strict=strict)


def _is_loader(data: object) -> TypeGuard[Loader]:
    """Return whether data is a torch `DataLoader`, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(data, torch.utils.data.DataLoader)


def describe_object(thing: Any) -> str:
    """Return a short description of an object for messages."""
    kind = type(thing).__name__
    if isinstance(thing, type):
        return f"the class {thing.__name__} instead of an instance"
    if hasattr(thing, "shape"):
        return f"an array of shape {tuple(thing.shape)}"
    if isinstance(thing, list | tuple):
        kinds = ", ".join(dict.fromkeys(type(one).__name__ for one in thing))
        return f"a {kind} of {len(thing)} ({kinds})" if thing else f"an empty {kind}"
    return f"an object of type {kind}"


def _dataset_of_pair(images: Any, labels: Any, name: str = "data") -> Dataset:
    """Return a dataset of `(images, labels)`: arrays, tensors or lists."""
    pixels = _array(images, "images")
    if pixels.ndim == 4 and _channels_first(pixels.shape[1:], is_tensor=hasattr(images, "movedim")):
        pixels = np.ascontiguousarray(np.moveaxis(pixels, 1, -1))
    if pixels.ndim not in (3, 4):
        raise OptionError(
            f"images must be (n, h, w, c), (n, c, h, w) or (n, h, w), got an array of shape {pixels.shape}"
        )
    validate_count("number of images", len(pixels))
    return from_arrays(name, _as_bytes(pixels), _labels(labels, len(pixels)))


def _dataset_of_items(items: Any, *, strict: bool = False) -> Dataset:
    """Return a dataset of items `(image, label)`, as in a torch `Dataset`.

    Items may be mappings, as in Hugging Face datasets. Images are PIL images, arrays `(h, w, c)` or tensors
    `(c, h, w)`. Labels are those of `items.targets`, or are read from the items.
    """
    kind = type(items).__name__
    count = validate_count("number of images", len(items))
    pixels = _Items(items)
    if not np.array_equal(pixels.read(0), pixels.read(0)):
        raise OptionError(f"{kind}[0] returned two different images; remove random transforms")
    labels = _labels(_targets(items, count), count)
    classes = _class_names(items, labels)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", kind).strip("-._") or "data"
    return Dataset(name, classes, RowIds("item", count), labels, pixels, strict=strict)


@dataclass(frozen=True, eq=False)
class _Items:
    """Images of another dataset, read by one thread at a time, as it may not be thread-safe."""

    items: Any
    _lock: Any = field(default_factory=Lock, repr=False)

    def read(self, index: int) -> Bytes:
        try:
            with self._lock:
                image = _split(self.items[index], index)[0]
            return _image(image)
        except BeaufortError:
            raise
        except OSError as error:
            raise ImageFileError(f"cannot read item {index}: {error}") from error

    def contents(self, count: int) -> Iterator[Content]:
        for index in range(count):
            yield Content(lambda index=index: self._chunks(index))  # type: ignore[misc]

    def _chunks(self, index: int) -> Iterator[bytes]:
        image = self.read(index)
        yield f"uint8 {image.shape}\n".encode()
        yield image.tobytes()

    def __getstate__(self) -> dict[str, Any]:
        return {"items": self.items}

    def __setstate__(self, state: dict[str, Any]) -> None:
        object.__setattr__(self, "items", state["items"])
        object.__setattr__(self, "_lock", Lock())


def _split(item: Any, index: int) -> tuple[Any, Any]:
    """Return the image and the label of an item."""
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    if isinstance(item, Mapping) and {"image", "label"} <= item.keys():
        return item["image"], item["label"]
    raise OptionError(
        f"item {index} must be (image, label), or a mapping with image and label, got {type(item).__name__}"
    )


def _image(image: Any) -> Bytes:
    """Return an image as uint8 `(h, w, c)`."""
    if isinstance(image, Image.Image) and image.mode not in ("L", "RGB"):
        image = flatten(plain_mode(image.copy()))  # as for image files
    pixels = _array(image, "an image")
    if pixels.ndim == 3 and _channels_first(pixels.shape, is_tensor=hasattr(image, "movedim")):
        pixels = np.moveaxis(pixels, 0, -1)
    if pixels.ndim not in (2, 3):
        raise OptionError(f"an image must be (h, w), (h, w, c) or (c, h, w), got shape {pixels.shape}")
    found = _as_bytes(pixels[None])
    return np.ascontiguousarray(found.reshape(validate_image_shape("an item", found.dtype, found.shape))[0])


def _channels_first(shape: tuple[int, ...], *, is_tensor: bool) -> bool:
    """Return whether the first of three axes is that of the channels, as in tensors."""
    first, last = shape[0] in (1, 3), shape[-1] in (1, 3)
    return first and (is_tensor or not last)


def _array(values: Any, what: str) -> NDArray[Any]:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        found = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise OptionError(f"cannot convert {what} to an array: {error}") from None
    return found


def _as_bytes(pixels: NDArray[Any]) -> Bytes:
    if pixels.dtype == np.uint8:
        return pixels
    is_float = pixels.dtype.kind == "f" and pixels.size > 0
    if not is_float or not (pixels.min() >= 0 and pixels.max() <= 1):
        values = f" from {pixels.min():.3g} to {pixels.max():.3g}" if is_float else ""
        raise OptionError(f"images must be {_FORMS}, got {pixels.dtype}{values}")
    rounded: Bytes = np.rint(pixels * 255).astype(np.uint8)
    return rounded


def _labels(labels: Any, count: int) -> NDArray[np.int64]:
    try:
        return validate_labels("labels", _array(labels, "labels"), count)
    except ImageFileError as error:
        raise OptionError(str(error)) from None


def _targets(items: Any, count: int) -> Any:
    """Return all labels, from `targets` if they are not transformed, or else from the items."""
    ready = getattr(items, "targets", None)
    if ready is not None and getattr(items, "target_transform", None) is None and len(ready) == count:
        return ready
    return [int(_split(items[index], index)[1]) for index in range(count)]


def _class_names(items: Any, labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Return the class names of a dataset; numbers if it does not name all of them."""
    features = getattr(items, "features", None)  # of Hugging Face datasets
    label = features.get("label") if isinstance(features, Mapping) else None
    names = getattr(items, "classes", getattr(label, "names", None))
    if isinstance(names, list | tuple) and len(names) > labels.max() and all(type(n) is str for n in names):
        return tuple(names)
    return numbered(labels)

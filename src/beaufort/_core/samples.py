"""Finding the images in samples of a data loader: tuples, dicts and nested structures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import copy
from typing import Any

from beaufort._core.arrays import is_tensor
from beaufort._core.errors import OptionError

_IMAGES = ("Image", "Video")
"""Names of torchvision's tensor classes of images; its boxes, masks and key points are tensors too."""


def find_images(sample: Any) -> frozenset[int]:
    """Return the `id`s of the leaves of a sample that are images.

    As in torchvision's transforms v2: PIL images and image tensors; if there are none, the first array or
    plain tensor of at least two dimensions.
    """
    leaves = list(_leaves(sample))
    certain = [leaf for leaf in leaves if _is_image(leaf)]
    chosen = certain or [leaf for leaf in leaves if _may_be_image(leaf)][:1]
    if not chosen:
        kinds = ", ".join(dict.fromkeys(type(leaf).__name__ for leaf in leaves)) or "nothing"
        raise OptionError(f"no image found in a sample of {kinds}; pass a PIL image, uint8 array or tensor")
    return frozenset(map(id, chosen))


_PLACES = {"BoundingBoxes": "boxes", "Mask": "masks", "KeyPoints": "key points"}
"""Names of torchvision's tensor classes of positions in an image, in words."""


def find_places(sample: Any) -> str:
    """Return in words which parts of a sample are positions in an image; empty if none."""
    kinds = {type(leaf).__name__ for leaf in _leaves(sample) if _is_tv_tensor(leaf)}
    return " and ".join(word for name, word in _PLACES.items() if name in kinds)


def map_leaves(sample: Any, change: Callable[[Any], Any]) -> Any:
    """Return the same structure with every leaf changed."""
    if isinstance(sample, Mapping):
        return _with_values(sample, {key: map_leaves(value, change) for key, value in sample.items()})
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*(map_leaves(value, change) for value in sample))
    if isinstance(sample, tuple | list):
        return type(sample)(map_leaves(value, change) for value in sample)
    return change(sample)


def _with_values(sample: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """Return a mapping of the same type with other values."""
    if type(sample) is dict:
        return values
    if isinstance(sample, MutableMapping):  # a copy keeps other attributes, as of a defaultdict
        changed = copy(sample)
        changed.update(values)
        return changed
    return type(sample)(values)  # type: ignore[call-arg]


def _leaves(sample: Any) -> Iterator[Any]:
    if isinstance(sample, Mapping):
        for value in sample.values():
            yield from _leaves(value)
    elif isinstance(sample, tuple | list):
        for value in sample:
            yield from _leaves(value)
    else:
        yield sample


def _is_image(leaf: Any) -> bool:
    kind = type(leaf)
    if kind.__module__.startswith("PIL."):
        return True
    return _is_tv_tensor(leaf) and kind.__name__ in _IMAGES


def _is_tv_tensor(leaf: Any) -> bool:
    return type(leaf).__module__.startswith("torchvision.tv_tensors")


def _may_be_image(leaf: Any) -> bool:
    if _is_tv_tensor(leaf):
        return False
    return (is_tensor(leaf) or type(leaf).__module__ == "numpy") and getattr(leaf, "ndim", 0) >= 2

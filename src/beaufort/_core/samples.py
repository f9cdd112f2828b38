"""Samples of a data loader: an image with a label, a dict, nested tuples; where the images are in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import copy
from typing import Any

from beaufort._core.arrays import is_tensor
from beaufort._core.errors import OptionError

_IMAGES = ("Image", "Video")
"""What torchvision calls its tensors that are pictures; its boxes, masks and key points are tensors, too."""


def find_images(sample: Any) -> frozenset[int]:
    """Which leaves of a sample are images, by their `id`.

    As in torchvision's transforms v2: PIL images and image tensors; if there are none, the first array or
    plain tensor of at least two dimensions.
    """
    leaves = list(_leaves(sample))
    surely = [leaf for leaf in leaves if _is_picture(leaf)]
    chosen = surely or [leaf for leaf in leaves if _may_be_picture(leaf)][:1]
    if not chosen:
        kinds = ", ".join(dict.fromkeys(type(leaf).__name__ for leaf in leaves)) or "nothing"
        raise OptionError(f"a sample must hold an image (PIL image, uint8 array or tensor), got {kinds}")
    return frozenset(map(id, chosen))


_PLACES = {"BoundingBoxes": "boxes", "Mask": "masks", "KeyPoints": "key points"}
"""What torchvision calls its tensors that say where something is in a picture."""


def find_places(sample: Any) -> str:
    """What of a sample says where something is in the picture, in words; empty if nothing does."""
    kinds = {type(leaf).__name__ for leaf in _leaves(sample) if _is_torchvisions(leaf)}
    return " and ".join(word for name, word in _PLACES.items() if name in kinds)


def map_leaves(sample: Any, change: Callable[[Any], Any]) -> Any:
    """The same structure with every leaf changed."""
    if isinstance(sample, Mapping):
        return _with_values(sample, {key: map_leaves(value, change) for key, value in sample.items()})
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*(map_leaves(value, change) for value in sample))
    if isinstance(sample, tuple | list):
        return type(sample)(map_leaves(value, change) for value in sample)
    return change(sample)


def _with_values(sample: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """A mapping of the same kind with other values."""
    if type(sample) is dict:
        return values
    if isinstance(sample, MutableMapping):  # a copy has what else it needs, as the factory of a defaultdict
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


def _is_picture(leaf: Any) -> bool:
    kind = type(leaf)
    if kind.__module__.startswith("PIL."):
        return True
    return _is_torchvisions(leaf) and kind.__name__ in _IMAGES


def _is_torchvisions(leaf: Any) -> bool:
    return type(leaf).__module__.startswith("torchvision.tv_tensors")


def _may_be_picture(leaf: Any) -> bool:
    if _is_torchvisions(leaf):
        return False
    return (is_tensor(leaf) or type(leaf).__module__ == "numpy") and getattr(leaf, "ndim", 0) >= 2

"""What a front end is: a filter of images, or a choice of views of them; its options are its fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from beaufort.arrays import Bytes
from beaufort.errors import ImageTypeError, ImageValueError, OptionError
from beaufort.registry import Registry

__all__ = ["Filter", "Views", "check_number", "checked", "front", "front_kinds", "lightness"]

_BATCHES = "a uint8 array (n, h, w, 1 or 3)"


@runtime_checkable
class Filter(Protocol):
    """Changes images one by one and keeps their shape. Its options are the fields of a dataclass."""

    version: ClassVar[int]
    """Raised when the same options give other pixels; part of a model's digest."""

    def __call__(self, images: Bytes) -> Bytes:
        """The changed images; what came is left alone."""


@runtime_checkable
class Views(Protocol):
    """Shows a model several parts of each image; its probabilities are averaged."""

    version: ClassVar[int]

    def source_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Height and width of the images that views of a size are cut from."""

    def __call__(self, images: Bytes, size: tuple[int, int]) -> list[Bytes]:
        """The views: each has all images, as large as the model's input."""


front_kinds: Registry[type[Any]] = Registry("front end")
"""Every kind by its name: dataclasses that are a `Filter` or `Views`."""

Kind = TypeVar("Kind", bound=type[Any])


def front(name: str) -> Callable[[Kind], Kind]:
    """Register a kind of front end under the name that texts begin with."""

    def register(kind: Kind) -> Kind:
        front_kinds.register(name, kind)
        return kind

    return register


def checked(images: Any) -> Bytes:
    """The images, if a front end takes them."""
    if not isinstance(images, np.ndarray):
        raise ImageTypeError(f"images must be {_BATCHES}, got {type(images).__name__}")
    if images.dtype != np.uint8:
        raise ImageTypeError(
            f"images must be {_BATCHES}, got dtype {images.dtype}; a front end comes before values are scaled"
        )
    if images.ndim != 4 or images.shape[-1] not in (1, 3) or 0 in images.shape[1:3]:
        raise ImageValueError(f"images must be {_BATCHES}, got shape {images.shape}")
    return images


def check_number(name: str, value: Any, low: float, high: float, *, whole: bool = False) -> None:
    """Refuse what is not a number within bounds."""
    kind = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        what = "an integer" if whole else "a number"
        raise OptionError(f"{name} must be {what} from {low:g} to {high:g}, got {value!r:.60}")


def lightness(image: Bytes, change: Callable[..., Any]) -> Bytes:
    """A picture whose lightness, L of CIELAB, is changed and whose colors are not; grey ones as they are."""
    import cv2

    if image.shape[-1] == 1:
        return np.asarray(change(np.ascontiguousarray(image[..., 0])), np.uint8)[..., None]
    lab: Any = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2LAB)
    lab[..., 0] = change(np.ascontiguousarray(lab[..., 0]))
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)

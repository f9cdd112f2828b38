"""What a front end is: a filter of images, or a choice of views of them; its options are its fields."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from beaufort._core.arrays import Bytes, checked_batch
from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort._core.validation import validate_integer, validate_number


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

BEFORE_SCALING = "a front end comes before values are scaled: give them as 0 to 255"
"""Why floats are refused, and what to do."""

Kind = TypeVar("Kind", bound=type[Any])


def front(name: str) -> Callable[[Kind], Kind]:
    """Register a kind of front end under the name that texts begin with."""

    def register(kind: Kind) -> Kind:
        front_kinds.register(name, kind)
        return kind

    return register


def checked(images: Any) -> Bytes:
    """The images, if a front end takes them."""
    return checked_batch(images, BEFORE_SCALING)


def check_flag(name: str, value: Any) -> None:
    """Refuse an option that is neither true nor false."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} must be True or False, got {value!r:.60}")


def settle_number(options: Any, name: str, low: float, high: float, *, whole: bool = False) -> None:
    """Refuse an option that is not a number within bounds; keep one of NumPy, say, as Python's own.

    So the same options have the same name and digest, whatever type their numbers came in.
    """
    value = getattr(options, name)
    if isinstance(value, Real) and not isinstance(value, bool):
        value = int(value) if isinstance(value, Integral) else float(value) + 0.0  # -0.0 is 0
    if whole:
        validate_integer(name, value, int(low), int(high))
    else:
        validate_number(name, value, low, high)
    object.__setattr__(options, name, value)


def each_image(images: Any, change: Callable[[Bytes], Bytes]) -> Bytes:
    """New images: of each that came, what it is changed to."""
    made = np.empty(checked(images).shape, np.uint8)
    for image, target in zip(images, made, strict=True):
        target[...] = change(image)
    return made


def lightness(image: Bytes, change: Callable[..., Any]) -> Bytes:
    """A picture whose lightness, L of CIELAB, is changed and whose colors are not; grey ones as they are."""
    import cv2

    if image.shape[-1] == 1:
        return np.asarray(change(np.ascontiguousarray(image[..., 0])), np.uint8)[..., None]
    lab: Any = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2LAB)
    lab[..., 0] = change(np.ascontiguousarray(lab[..., 0]))
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)

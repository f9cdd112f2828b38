"""What an image filter is: a change of images, or a choice of views of them; its options are its fields."""

from __future__ import annotations

from collections.abc import Callable
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
        """The changed images; the input is not modified."""


@runtime_checkable
class Views(Protocol):
    """Shows a model several parts of each image; its probabilities are averaged."""

    version: ClassVar[int]

    def source_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Height and width of the images that views of a size are cut from."""

    def __call__(self, images: Bytes, size: tuple[int, int]) -> list[Bytes]:
        """The views: each has all images, as large as the model's input."""


filter_kinds: Registry[type[Any]] = Registry("image filter")
"""Every kind by its name: dataclasses that are a `Filter` or `Views`."""

BEFORE_SCALING = "an image filter comes before values are scaled: pass them as 0 to 255"
"""Why floats are rejected, and what to do."""

Kind = TypeVar("Kind", bound=type[Any])


def image_filter(name: str) -> Callable[[Kind], Kind]:
    """Register a kind of image filter under the name that texts begin with."""

    def register(kind: Kind) -> Kind:
        filter_kinds.register(name, kind)
        return kind

    return register


def checked(images: Any) -> Bytes:
    """The images, if an image filter takes them."""
    return checked_batch(images, BEFORE_SCALING)


def validate_flag(name: str, value: Any) -> None:
    """Reject an option that is neither true nor false."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} must be True or False, got {value!r:.60}")


def validate_field(options: Any, name: str, low: float, high: float, *, integer: bool = False) -> None:
    """Reject a field that is not a number within bounds, and keep it as Python's own type.

    So the same options have the same name and digest, whatever type their numbers came in.
    """
    value = getattr(options, name)
    if integer:
        number: float = validate_integer(name, value, int(low), int(high))
    else:
        number = validate_number(name, value, low, high) + 0.0  # -0.0 is 0
    object.__setattr__(options, name, number)


def each_image(images: Any, change: Callable[[Bytes], Bytes]) -> Bytes:
    """New images: of each that came, what it is changed to."""
    made = np.empty(checked(images).shape, np.uint8)
    for image, target in zip(images, made, strict=True):
        target[...] = change(image)
    return made

"""Interface of image filters: dataclasses that change images or make views of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from beaufort._core.arrays import Bytes, checked_batch
from beaufort._core.registry import Registry
from beaufort._core.validation import validate_integer, validate_number


@runtime_checkable
class Filter(Protocol):
    """A change of images, one by one, that keeps their shape."""

    version: ClassVar[int]
    """Incremented when the same options give other pixels; part of a model's digest."""

    def __call__(self, images: Bytes) -> Bytes:
        """Return the changed images; the input is not modified."""


@runtime_checkable
class Views(Protocol):
    """A choice of several views of each image; the model's probabilities for them are averaged."""

    version: ClassVar[int]

    def source_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return height and width of the images that views of a size are cut from."""

    def __call__(self, images: Bytes, size: tuple[int, int]) -> list[Bytes]:
        """Return the views, each a batch of all images, of the model's input size."""


filter_kinds: Registry[type[Any]] = Registry("image filter")
"""Dataclasses that implement `Filter` or `Views`, by name."""

BEFORE_SCALING = "an image filter comes before values are scaled: pass them as 0 to 255"
"""Hint of errors about images of floats."""

Kind = TypeVar("Kind", bound=type[Any])


def image_filter(name: str) -> Callable[[Kind], Kind]:
    """Register a class of image filters by name."""

    def register(kind: Kind) -> Kind:
        filter_kinds.register(name, kind)
        return kind

    return register


def validate_field(options: Any, name: str, low: float, high: float, *, integer: bool = False) -> None:
    """Validate a number in a field, and convert it to Python's own type.

    So the same options have the same name and digest, whatever the type of their numbers.
    """
    value = getattr(options, name)
    if integer:
        number: float = validate_integer(name, value, int(low), int(high))
    else:
        number = validate_number(name, value, low, high) + 0.0  # -0.0 is 0
    object.__setattr__(options, name, number)


def each_image(images: Any, change: Callable[[Bytes], Bytes]) -> Bytes:
    """Return changed images."""
    changed = np.empty(checked_batch(images, BEFORE_SCALING).shape, np.uint8)
    for image, target in zip(images, changed, strict=True):
        target[...] = change(image)
    return changed

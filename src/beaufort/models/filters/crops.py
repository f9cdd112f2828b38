"""Several crops of an image, whose probabilities are averaged: ten-crop, or a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from beaufort._core.arrays import Bytes, checked_batch
from beaufort._core.errors import ImageValueError, OptionError
from beaufort._core.validation import validate_flag, validate_integer
from beaufort.models.filters.base import BEFORE_SCALING, image_filter, validate_field

_LARGER = 8 / 7
"""256 pixels for an input of 224, as is usual for ImageNet."""


class _Crops:
    """Crops at positions given by a subclass, a dataclass with these fields."""

    side: int
    pad: int
    mirror: bool
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        validate_field(self, "side", 0, 16384, integer=True)
        validate_field(self, "pad", 0, 1024, integer=True)
        validate_flag("mirror", self.mirror)
        if self.side and self.pad:
            raise OptionError(f"side and pad cannot be used together, got {self.side} and {self.pad}")

    def positions(self, down: int, right: int) -> list[tuple[int, int]]:
        """Return top and left of the crops, within these limits."""
        raise NotImplementedError

    def source_size(self, size: tuple[int, int]) -> tuple[int, int]:
        if self.pad:
            validate_integer("pad", self.pad, 0, min(size) - 1)
            return size
        if self.side:
            validate_integer("side", self.side, min(size))
        factor = self.side / min(size) if self.side else _LARGER
        height, width = (max(length, round(length * factor)) for length in size)
        return height, width

    def __call__(self, images: Bytes, size: tuple[int, int]) -> list[Bytes]:
        images = self._padded(images, size)
        views = []
        for top, left in self.positions(images.shape[1] - size[0], images.shape[2] - size[1]):
            crop = images[:, top : top + size[0], left : left + size[1]]
            views += [crop, crop[:, :, ::-1]] if self.mirror else [crop]
        return list(map(np.ascontiguousarray, views))

    def _padded(self, images: Bytes, size: tuple[int, int]) -> Bytes:
        pad = self.pad
        height, width = checked_batch(images, BEFORE_SCALING).shape[1:3]
        if height + 2 * pad < size[0] or width + 2 * pad < size[1]:
            raise ImageValueError(
                f"images must have at least {size[0] - 2 * pad}×{size[1] - 2 * pad} pixels for views of "
                f"{size[0]}×{size[1]}, got {height}×{width}; use with_filter, which resizes images"
            )
        if not pad:
            return images
        validate_integer("pad", pad, 0, min(height, width) - 1)
        return np.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)), mode="reflect")


@image_filter("ten-crop")
@dataclass(frozen=True, kw_only=True)
class TenCrop(_Crops):
    """The four corners and the center, and their mirror images."""

    side: int = 0
    """Short side in pixels of the image that is cropped; 8/7 of the input if 0. Images of another size
    are resized as the model resizes them: stretched, or with a center crop."""
    pad: int = 0
    """Mirrored pixels added at each border of the model's own input instead."""
    mirror: bool = True
    """False leaves five crops."""

    def positions(self, down: int, right: int) -> list[tuple[int, int]]:
        return [(0, 0), (0, right), (down, 0), (down, right), (round(down / 2), round(right / 2))]


@image_filter("multi-crop")
@dataclass(frozen=True, kw_only=True)
class MultiCrop(_Crops):
    """Crops on an even grid from border to border of the image; a grid of 1 is the center."""

    grid: int = 3
    """Crops along each side."""
    side: int = 0
    """As for ten-crop."""
    pad: int = 0
    """As for ten-crop."""
    mirror: bool = True
    """Whether to add the mirror image of each crop."""

    def __post_init__(self) -> None:
        validate_field(self, "grid", 1, 16, integer=True)
        super().__post_init__()

    def positions(self, down: int, right: int) -> list[tuple[int, int]]:
        fractions = [0.5] if self.grid == 1 else [i / (self.grid - 1) for i in range(self.grid)]
        return [(round(down * y), round(right * x)) for y in fractions for x in fractions]

"""Several crops of a image, whose probabilities are averaged: ten as is usual, or a grid of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageValueError, OptionError
from beaufort._core.validation import validate_integer
from beaufort.models.filters.base import checked, image_filter, validate_field, validate_flag

_LARGER = 8 / 7
"""256 pixels for an input of 224, as networks for ImageNet are tested."""


@image_filter("ten-crop")
@dataclass(frozen=True, kw_only=True)
class TenCrop:
    """The four corners and the middle, and their mirror images."""

    side: int = 0
    """Short side in pixels of the image that is cropped; 8/7 of the input if 0. Images of another size
    are resized as the model resizes them: stretched, or their middle is taken."""
    pad: int = 0
    """Pixels that the model's own input gets at each border instead, mirrored."""
    mirror: bool = True
    """False leaves five crops."""

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check(self)

    def source_size(self, size: tuple[int, int]) -> tuple[int, int]:
        return _source_size(self.side, self.pad, size)

    def __call__(self, images: Bytes, size: tuple[int, int]) -> list[Bytes]:
        images = _source(images, self.pad, size)
        bottom, right = images.shape[1] - size[0], images.shape[2] - size[1]
        middle = (round(bottom / 2), round(right / 2))
        places = [(0, 0), (0, right), (bottom, 0), (bottom, right), middle]
        return list(_cut(images, places, size, mirror=self.mirror))


@image_filter("multi-crop")
@dataclass(frozen=True, kw_only=True)
class MultiCrop:
    """Crops on an even grid from border to border of the image; a grid of 1 is the middle."""

    grid: int = 3
    """Crops along each side."""
    side: int = 0
    """As for ten-crop."""
    pad: int = 0
    """As for ten-crop."""
    mirror: bool = True
    """Whether each crop is shown mirrored, too."""

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        validate_field(self, "grid", 1, 16, integer=True)
        _check(self)

    def source_size(self, size: tuple[int, int]) -> tuple[int, int]:
        return _source_size(self.side, self.pad, size)

    def __call__(self, images: Bytes, size: tuple[int, int]) -> list[Bytes]:
        images = _source(images, self.pad, size)
        tops, lefts = (
            [round(room * share) for share in _shares(self.grid)]
            for room in (images.shape[1] - size[0], images.shape[2] - size[1])
        )
        return list(_cut(images, [(top, left) for top in tops for left in lefts], size, mirror=self.mirror))


def _check(crops: TenCrop | MultiCrop) -> None:
    validate_field(crops, "side", 0, 16384, integer=True)
    validate_field(crops, "pad", 0, 1024, integer=True)
    validate_flag("mirror", crops.mirror)
    if crops.side and crops.pad:
        raise OptionError(
            "side or pad must be 0: crops are of a larger image or of a border, got "
            f"{crops.side} and {crops.pad}"
        )


def _source_size(side: int, pad: int, size: tuple[int, int]) -> tuple[int, int]:
    if pad:
        validate_integer("pad", pad, 0, min(size) - 1)
        return size
    if side and side < min(size):
        raise OptionError(f"side must be at least {min(size)}, which the model takes, got {side}")
    share = side / min(size) if side else _LARGER
    height, width = (max(length, round(length * share)) for length in size)
    return height, width


def _source(images: Bytes, pad: int, size: tuple[int, int]) -> Bytes:
    """What views of a size are cut from: the images, with their border."""
    height, width = checked(images).shape[1:3]
    if height + 2 * pad < size[0] or width + 2 * pad < size[1]:
        raise ImageValueError(
            f"images must have at least {size[0] - 2 * pad}×{size[1] - 2 * pad} pixels, for views of "
            f"{size[0]}×{size[1]}, got {height}×{width}; enlarge them, or use with_filter, which does"
        )
    if not pad:
        return images
    validate_integer("pad", pad, 0, min(height, width) - 1)
    return np.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)), mode="reflect")


def _shares(grid: int) -> list[float]:
    return [0.5] if grid == 1 else [at / (grid - 1) for at in range(grid)]


def _cut(
    images: Bytes, places: list[tuple[int, int]], size: tuple[int, int], *, mirror: bool
) -> Iterator[Bytes]:
    for top, left in places:
        crop = images[:, top : top + size[0], left : left + size[1]]
        yield np.ascontiguousarray(crop)
        if mirror:
            yield np.ascontiguousarray(crop[:, :, ::-1])

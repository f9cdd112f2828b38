"""Filters of contrast: CLAHE and histogram equalization of the lightness, and contrast stretching."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort.models.filters.base import checked, each_image, image_filter, validate_field, validate_flag


@image_filter("clahe")
@dataclass(frozen=True, kw_only=True)
class Clahe:
    """Local contrast made even, limited by `clip` (Zuiderveld 1994)."""

    clip: float = 2.0
    """How often the mean count of a histogram a bin may have; OpenCV's `clipLimit`."""
    tiles: int = 8
    """Tiles along each side. Small images need few: at 32 pixels, 8 would have 16 pixels each."""

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        validate_field(self, "clip", 0.01, 256)
        validate_field(self, "tiles", 1, 64, integer=True)

    def __call__(self, images: Bytes) -> Bytes:
        import cv2

        method = cv2.createCLAHE(self.clip, (self.tiles, self.tiles))
        return each_image(images, lambda image: _with_lightness(image, method.apply))


@image_filter("equalize")
@dataclass(frozen=True, kw_only=True)
class Equalize:
    """All lightnesses made equally frequent, as far as possible (OpenCV's `equalizeHist`)."""

    version: ClassVar[int] = 1

    def __call__(self, images: Bytes) -> Bytes:
        return each_image(images, lambda image: _with_lightness(image, _equalized))


@image_filter("stretch")
@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Values spread over 0…255 by a straight line; where all are equal, they stay."""

    each: bool = False
    """Whether every channel has a line of its own; that nearly undoes lost contrast, and changes colors."""
    cut: float = 0.0
    """Percent of the values that may be clipped at either end."""

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        validate_flag("each", self.each)
        validate_field(self, "cut", 0, 49)

    def __call__(self, images: Bytes) -> Bytes:
        levels = np.arange(256, dtype=np.float64)
        out = np.empty(checked(images).shape, np.uint8)
        for image, target in _planes(images, out) if self.each else zip(images, out, strict=True):
            low, high = (
                np.percentile(image, [self.cut, 100 - self.cut]) if self.cut else (image.min(), image.max())
            )
            if high <= low:
                target[...] = image
                continue
            table = np.clip(np.rint((levels - low) * (255 / (float(high) - float(low)))), 0, 255)
            target[...] = table.astype(np.uint8)[image]
        return out


def _planes(images: Bytes, out: Bytes) -> Iterator[tuple[Bytes, Bytes]]:
    """Every channel of every image."""
    for image, target in zip(images, out, strict=True):
        for channel in range(images.shape[-1]):
            yield image[..., channel], target[..., channel]


def _with_lightness(image: Bytes, change: Callable[..., Any]) -> Bytes:
    """An image whose lightness, L of CIELAB, is changed and whose colors are not; grey ones as they are."""
    import cv2

    if image.shape[-1] == 1:
        return np.asarray(change(np.ascontiguousarray(image[..., 0])), np.uint8)[..., None]
    lab: Any = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2LAB)
    lab[..., 0] = change(np.ascontiguousarray(lab[..., 0]))
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)


def _equalized(plane: Bytes) -> Bytes:
    """As `cv2.equalizeHist`, whose threads cost more than the work."""
    counts = np.bincount(plane.ravel(), minlength=256)
    first = counts[np.flatnonzero(counts)[0]]
    if first == plane.size:
        return plane
    scale = np.float32(255) / np.float32(plane.size - first)
    table = np.rint((np.cumsum(counts) - first).astype(np.float32) * scale)
    found: Bytes = np.clip(table, 0, 255).astype(np.uint8)[plane]
    return found

"""Contrast filters: CLAHE and histogram equalization of the lightness, and contrast stretching."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort._core.validation import validate_flag
from beaufort.models.filters.base import each_image, image_filter, validate_field


@image_filter("clahe")
@dataclass(frozen=True, kw_only=True)
class Clahe:
    """Contrast limited adaptive histogram equalization (Zuiderveld 1994)."""

    clip: float = 2.0
    """Limit of a histogram bin, in units of the mean count; OpenCV's `clipLimit`."""
    tiles: int = 8
    """Tiles along each side. Use few for small images: 8 tiles of a 32-pixel image have 16 pixels each."""

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
    """Histogram equalization of the lightness (OpenCV's `equalizeHist`)."""

    version: ClassVar[int] = 1

    def __call__(self, images: Bytes) -> Bytes:
        return each_image(images, lambda image: _with_lightness(image, _equalized))


@image_filter("stretch")
@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Values mapped linearly to 0…255; constant images are unchanged."""

    each: bool = False
    """Stretch each channel on its own, which nearly undoes lost contrast but changes colors."""
    cut: float = 0.0
    """Percentage of the values that may be clipped at either end."""

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        validate_flag("each", self.each)
        validate_field(self, "cut", 0, 49)

    def __call__(self, images: Bytes) -> Bytes:
        return each_image(images, self._channelwise if self.each else self._stretched)

    def _channelwise(self, image: Bytes) -> Bytes:
        return np.stack([self._stretched(image[..., i]) for i in range(image.shape[-1])], axis=-1)

    def _stretched(self, values: Bytes) -> Bytes:
        low, high = (
            np.percentile(values, [self.cut, 100 - self.cut]) if self.cut else (values.min(), values.max())
        )
        if high <= low:
            return values
        levels = (np.arange(256, dtype=np.float64) - low) * (255 / (float(high) - float(low)))
        return np.asarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8)[values])


def _with_lightness(image: Bytes, change: Callable[..., Any]) -> Bytes:
    """Change the lightness of an image, L of CIELAB; the values of a gray image."""
    import cv2

    if image.shape[-1] == 1:
        return np.asarray(change(np.ascontiguousarray(image[..., 0])), np.uint8)[..., None]
    lab: Any = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2LAB)
    lab[..., 0] = change(np.ascontiguousarray(lab[..., 0]))
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)


def _equalized(plane: Bytes) -> Bytes:
    """Return `cv2.equalizeHist(plane)`, whose threads cost more than the work."""
    counts = np.bincount(plane.ravel(), minlength=256)
    first = counts[np.flatnonzero(counts)[0]]
    if first == plane.size:
        return plane
    scale = np.float32(255) / np.float32(plane.size - first)
    table = np.rint((np.cumsum(counts) - first).astype(np.float32) * scale)
    return np.asarray(np.clip(table, 0, 255).astype(np.uint8)[plane])

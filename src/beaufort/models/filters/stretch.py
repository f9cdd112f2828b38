"""Contrast stretching: the darkest value of a picture becomes 0 and the brightest 255."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort.models.filters._front import check_flag, checked, front, settle_number


@front("stretch")
@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Values spread over 0…255 by a straight line; where all are equal, they stay."""

    each: bool = False
    """Whether every channel has a line of its own; that nearly undoes lost contrast, and changes colors."""
    cut: float = 0.0
    """Percent of the values that may be clipped at either end."""

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_flag("each", self.each)
        settle_number(self, "cut", 0, 49)

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

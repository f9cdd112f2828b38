"""CLAHE: contrast-limited adaptive histogram equalization, OpenCV's, of the lightness of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from beaufort._core.arrays import Bytes
from beaufort.models.filters._front import each_image, front, lightness, settle_number


@front("clahe")
@dataclass(frozen=True, kw_only=True)
class Clahe:
    """Local contrast made even, limited by `clip` (Zuiderveld 1994)."""

    clip: float = 2.0
    """How often the mean count of a histogram a bin may have; OpenCV's `clipLimit`."""
    tiles: int = 8
    """Tiles along each side. Small pictures need few: at 32 pixels, 8 would have 16 pixels each."""

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        settle_number(self, "clip", 0.01, 256)
        settle_number(self, "tiles", 1, 64, whole=True)

    def __call__(self, images: Bytes) -> Bytes:
        import cv2

        method = cv2.createCLAHE(self.clip, (self.tiles, self.tiles))
        return each_image(images, lambda image: lightness(image, method.apply))

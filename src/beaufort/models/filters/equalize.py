"""Global histogram equalization of the lightness of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from beaufort._core.arrays import Bytes
from beaufort.models.filters._front import each_image, front, lightness


@front("equalize")
@dataclass(frozen=True, kw_only=True)
class Equalize:
    """All lightnesses made equally frequent, as far as possible (OpenCV's `equalizeHist`)."""

    version: ClassVar[int] = 1

    def __call__(self, images: Bytes) -> Bytes:
        return each_image(images, lambda image: lightness(image, _equalized))


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

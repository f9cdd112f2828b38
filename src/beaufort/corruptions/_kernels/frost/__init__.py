"""Textures, and images mixed with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, Images
from beaufort._core.errors import AssetError

__all__ = ["FrostOps", "read_texture", "resize"]


class FrostOps(Protocol):
    """Textures, and images mixed with them."""

    def blend(
        self,
        images: Images,
        textures: Sequence[Bytes],
        crops: NDArray[np.int64],
        weight: float,
        texture_weight: float,
        *,
        nearest: bool = False,
    ) -> Images:
        """a·X + b·F; F is cut from a texture `(h, w, c)`: its number, first row and column for each image."""


def read_texture(path: Path, *, grey: bool) -> NDArray[np.uint8]:
    """The pixels of a picture file, `(h, w, 3)`, or `(h, w, 1)` as OpenCV's reader makes it grey."""
    import cv2

    mode = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR_RGB
    pixels = cv2.imdecode(np.fromfile(path, np.uint8), mode)
    if pixels is None:
        raise AssetError(f"OpenCV cannot read {path} as a picture; delete the file to have it fetched again")
    return np.atleast_3d(np.asarray(pixels, np.uint8))


def resize(image: NDArray[np.uint8], factor: float) -> NDArray[np.uint8]:
    """Resample bilinearly, without smoothing before it shrinks."""
    import cv2

    resized = cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR)
    return np.atleast_3d(np.asarray(resized, np.uint8))

"""Files and formats: JPEG there and back, textures, resampling."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes
from beaufort.errors import AssetError

__all__ = ["jpeg", "read_texture", "resize"]


def jpeg(images: Bytes, quality: int) -> Bytes:
    """Baseline JPEG, 4:2:0, standard tables; one channel stays one channel."""
    options = [cv2.IMWRITE_JPEG_QUALITY, quality]
    out = np.empty_like(images)
    for image, target in zip(images, out, strict=True):
        if image.shape[-1] == 1:
            _, code = cv2.imencode(".jpg", image, options)
            target[..., 0] = cv2.imdecode(code, cv2.IMREAD_GRAYSCALE)
        else:
            _, code = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
            target[...] = cv2.imdecode(code, cv2.IMREAD_COLOR_RGB)
    return out


def read_texture(path: Path, *, grey: bool) -> NDArray[np.uint8]:
    """The pixels of a picture file, `(h, w, 3)`, or `(h, w, 1)` as OpenCV's reader makes it grey."""
    mode = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR_RGB
    pixels = cv2.imdecode(np.fromfile(path, np.uint8), mode)
    if pixels is None:
        raise AssetError(f"{path} is not a picture that OpenCV reads; delete it, and it is fetched again")
    return np.atleast_3d(np.asarray(pixels, np.uint8))


def resize(image: NDArray[np.uint8], factor: float) -> NDArray[np.uint8]:
    """Plain bilinear resampling, no smoothing before it shrinks."""
    resized = cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR)
    return np.atleast_3d(np.asarray(resized, np.uint8))

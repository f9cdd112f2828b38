"""JPEG there and back, with OpenCV."""

from __future__ import annotations

import cv2
import numpy as np

from beaufort.arrays import Bytes

__all__ = ["jpeg"]


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

"""Thumbnails as data URIs."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort.data.images import FORMATS, encode

_SMALL = 64
"""Largest side of images that are embedded without loss; the page enlarges their pixels."""

_QUALITY = 78


def image_uri(image: Image.Image, kind: str, quality: int) -> str:
    """Return an image as a data URI; `kind` is `png` or `jpeg`."""
    return f"data:image/{kind};base64,{b64encode(encode(image, FORMATS[kind], quality)).decode()}"


def thumbnail_uri(pixels: Bytes, side: int) -> str:
    """Return an image `(h, w, c)` as a data URI, its long side at most `side` unless it is small."""
    image = Image.fromarray(pixels if pixels.shape[-1] == 3 else pixels[..., 0])
    if max(image.size) <= _SMALL:
        return image_uri(image, "png", _QUALITY)
    if max(image.size) > side:
        factor = side / max(image.size)
        size = max(1, round(image.width * factor)), max(1, round(image.height * factor))
        image = image.resize(size, Image.Resampling.BOX if factor < 0.6 else Image.Resampling.LANCZOS)
    return image_uri(image, "jpeg", _QUALITY)


class Album:
    """The distinct images of a page, and their size in bytes."""

    def __init__(self) -> None:
        self.images: list[str] = []
        self.size = 0
        self._known: dict[object, int] = {}

    def place(self, key: object) -> int | None:
        """Return the index of the image of this key, if there is one."""
        return self._known.get(key)

    def add(self, key: object, pixels: Bytes, side: int) -> int:
        """Add an image unless its key is known, and return its index."""
        if key not in self._known:
            uri = thumbnail_uri(np.ascontiguousarray(pixels), side)
            self._known[key] = len(self.images)
            self.images.append(uri)
            self.size += len(uri)
        return self._known[key]

"""Pictures small enough to stand in a page."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort.data.images import FORMATS, encode

SMALL = 64
"""Pictures up to this side stay as they are, without loss; the page enlarges their pixels."""

_QUALITY = 78


def data_uri(pixels: Bytes, side: int) -> str:
    """A picture `(h, w, c)` as an address that holds it, its long side at most `side` unless it is small."""
    picture = Image.fromarray(pixels if pixels.shape[-1] == 3 else pixels[..., 0])
    if max(picture.size) <= SMALL:
        return _address(picture, "png")
    if max(picture.size) > side:
        factor = side / max(picture.size)
        size = max(1, round(picture.width * factor)), max(1, round(picture.height * factor))
        picture = picture.resize(size, Image.Resampling.BOX if factor < 0.6 else Image.Resampling.LANCZOS)
    return _address(picture, "jpeg")


def _address(picture: Image.Image, kind: str) -> str:
    content = b64encode(encode(picture, FORMATS[kind], _QUALITY)).decode()
    return f"data:image/{kind};base64,{content}"


class Album:
    """Pictures of a page, each once, and how many bytes they take."""

    def __init__(self) -> None:
        self.pictures: list[str] = []
        self.size = 0
        self._known: dict[object, int] = {}

    def place(self, key: object) -> int | None:
        """Where a picture of this key is, if it is there."""
        return self._known.get(key)

    def add(self, key: object, pixels: Bytes, side: int) -> int:
        """Put a picture in, and say where it is."""
        if (known := self._known.get(key)) is not None:
            return known
        address = data_uri(np.ascontiguousarray(pixels), side)
        self.pictures.append(address)
        self.size += len(address)
        self._known[key] = len(self.pictures) - 1
        return self._known[key]

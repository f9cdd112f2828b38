"""Encoding of images."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from PIL import Image

from beaufort._core.errors import ImageFileError
from beaufort.data.images.read import flatten


@dataclass(frozen=True)
class Format:
    """A format of image files."""

    name: str
    """Name in Pillow."""
    suffixes: tuple[str, ...]
    """Extensions in lower case; the first is the default."""
    alpha: bool
    """Whether it supports transparency."""
    options: Mapping[str, Any] = field(default_factory=dict)
    lossless: bool = True


FORMATS: dict[str, Format] = {
    "jpeg": Format("JPEG", (".jpg", ".jpeg", ".jpe", ".jfif"), False, {"optimize": True}, lossless=False),
    "png": Format("PNG", (".png",), True),
    "webp": Format("WEBP", (".webp",), True, {"lossless": True, "exact": True}),
    "tiff": Format("TIFF", (".tif", ".tiff"), True, {"compression": "tiff_deflate"}),
    "bmp": Format("BMP", (".bmp",), False),
}
"""Supported formats by name; all but JPEG are lossless."""


def format_of(name: str) -> Format:
    """Return the format for a file name; PNG for unknown extensions.

    >>> format_of("cat.JPEG").name, format_of("cat.gif").name
    ('JPEG', 'PNG')
    """
    suffix = PurePath(name).suffix.lower()
    return next((kind for kind in FORMATS.values() if suffix in kind.suffixes), FORMATS["png"])


def encode(image: Image.Image, kind: Format, quality: int = 85) -> bytes:
    """Return the bytes of a file, which are the same for the same image; `quality` is that of JPEG."""
    options = dict(kind.options) if kind.lossless else {**kind.options, "quality": quality}
    buffer = io.BytesIO()
    try:
        (image if kind.alpha else flatten(image)).save(buffer, kind.name, **options)
    except (OSError, ValueError) as error:
        raise ImageFileError(f"cannot encode the image as {kind.name}: {error}; try --format png") from error
    return buffer.getvalue()

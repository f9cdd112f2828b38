"""From an image to the bytes of a file."""

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
    """A kind of file that images are written as."""

    name: str
    """As Pillow calls it."""
    suffixes: tuple[str, ...]
    """Endings in lower case; the first is used where the name has none of them."""
    alpha: bool
    """Whether it keeps transparency."""
    options: Mapping[str, Any] = field(default_factory=dict)
    lossless: bool = True


FORMATS: dict[str, Format] = {
    "jpeg": Format("JPEG", (".jpg", ".jpeg", ".jpe", ".jfif"), False, {"optimize": True}, lossless=False),
    "png": Format("PNG", (".png",), True),
    "webp": Format("WEBP", (".webp",), True, {"lossless": True, "exact": True}),
    "tiff": Format("TIFF", (".tif", ".tiff"), True, {"compression": "tiff_deflate"}),
    "bmp": Format("BMP", (".bmp",), False),
}
"""What can be written, by name. All but JPEG keep every value."""


def format_of(name: str) -> Format:
    """The format that a file name's ending stands for; PNG where it stands for none that can be written.

    >>> format_of("cat.JPEG").name, format_of("cat.gif").name
    ('JPEG', 'PNG')
    """
    suffix = PurePath(name).suffix.lower()
    return next((kind for kind in FORMATS.values() if suffix in kind.suffixes), FORMATS["png"])


def encode(image: Image.Image, kind: Format, quality: int = 85) -> bytes:
    """The bytes of a file; `quality` is JPEG's. The same image gives the same bytes."""
    options = dict(kind.options) if kind.lossless else {**kind.options, "quality": quality}
    buffer = io.BytesIO()
    try:
        (image if kind.alpha else flatten(image)).save(buffer, kind.name, **options)
    except (OSError, ValueError) as error:
        raise ImageFileError(
            f"the result cannot be written as {kind.name} ({error}); try --format png"
        ) from error
    return buffer.getvalue()

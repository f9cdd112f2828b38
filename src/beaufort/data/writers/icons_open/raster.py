"""From an icon's file to a picture on white, and whether two pictures are the same drawing."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort._core.optional import require
from beaufort.data.images import decode_image, flatten

SIDE = 120
"""Pixels of an icon's sides, as most of Icons-50 have."""
SAME = 4.0
"""Mean absolute difference at 32 × 32 pixels up to which two renditions count as one drawing."""


def rasterizer() -> str:
    """What draws SVG, with its version; a `MissingExtraError` if it is not installed."""
    found = require("resvg_py", "icons", what="icons")
    return f"resvg {found.__resvg_version__}"


def rasterize(content: bytes) -> Image.Image:
    """The picture of an SVG or WebP file, RGB on white, with sides of `SIDE` pixels.

    Fonts of the machine are not used, so that every machine draws the same.
    """
    drawn = _drawn(content) if content.lstrip().startswith(b"<svg") else decode_image(content)
    if drawn.mode == "RGBA" and not np.asarray(drawn)[..., 3].any():
        raise ImageFileError("nothing is drawn: every pixel is transparent")
    picture = flatten(drawn).convert("RGB")
    return picture if picture.size == (SIDE, SIDE) else picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def _drawn(content: bytes) -> Image.Image:
    resvg = require("resvg_py", "icons", what="icons")
    try:
        drawn = resvg.svg_to_bytes(
            svg_string=content.decode(), width=SIDE, height=SIDE, skip_system_fonts=True
        )
        picture = Image.open(io.BytesIO(bytes(drawn)))
        picture.load()
    except Exception as error:  # what the library raises is not said anywhere
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ImageFileError(f"the SVG cannot be rasterized ({reason:.200})") from None
    return picture


def thumbnail(picture: Image.Image) -> Bytes:
    """The picture at 32 × 32 pixels."""
    return np.asarray(picture.resize((32, 32), Image.Resampling.BILINEAR))


def difference(first: Bytes, second: Bytes) -> float:
    """Mean absolute difference of two thumbnails, in levels of 0 to 255."""
    return float(np.abs(first.astype(np.int16) - second).mean())

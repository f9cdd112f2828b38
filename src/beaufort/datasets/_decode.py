"""From the bytes of a picture's file to an array.

The rotation in EXIF data is not carried out, as in torchvision and in the programs that made the published
sets; what is transparent is laid on white, as `beaufort make` does. Grey stays one channel.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from beaufort.arrays import Bytes
from beaufort.errors import BeaufortError, ImageFileError
from beaufort.images import MAX_PIXELS, flatten, read_image
from beaufort.images.read import _check_header, _plain

__all__ = ["MOST_BYTES", "decode", "decode_file"]

MOST_BYTES = 1 << 28
"""A file in an archive that unpacks to more is not taken for a picture."""


def decode_file(path: Path) -> Bytes:
    """The picture in a file, `(h, w, 1 or 3)`."""
    return _as_array(read_image(path, upright=False))


def decode(content: bytes) -> Bytes:
    """The picture in the bytes of a file, `(h, w, 1 or 3)`; refused for what a file is refused for."""
    if not content:
        raise ImageFileError("the file is empty (0 bytes)")
    try:
        with Image.open(io.BytesIO(content)) as opened:
            _check_header(opened)
            opened.load()
            return _as_array(_plain(opened))
    except BeaufortError:
        raise
    except UnidentifiedImageError:
        raise ImageFileError(
            "the file is not a picture of a format that can be read, or its start is damaged"
        ) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageFileError(
            f"the picture has more than {MAX_PIXELS:,} pixels; make it smaller first"
        ) from None
    except Exception as error:  # a decoder that meets hostile bytes may raise anything
        raise ImageFileError(f"the picture is damaged or cut short ({error})") from error


def _as_array(image: Image.Image) -> Bytes:
    pixels = np.asarray(flatten(image))
    return pixels[..., None] if pixels.ndim == 2 else pixels

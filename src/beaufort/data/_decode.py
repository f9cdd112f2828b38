"""From the bytes of a picture's file to an array.

The rotation in EXIF data is not carried out, as in torchvision and in the programs that made the published
sets; what is transparent is laid on white, as `beaufort make` does. Grey stays one channel.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort.data.images import decode_image, flatten, read_image

MOST_BYTES = 1 << 28
"""A file in an archive that unpacks to more is not taken for a picture."""


def decode_file(path: Path) -> Bytes:
    """The picture in a file, `(h, w, 1 or 3)`."""
    return _as_array(read_image(path, upright=False))


def decode(content: bytes) -> Bytes:
    """The picture in the bytes of a file, `(h, w, 1 or 3)`; refused for what a file is refused for."""
    return _as_array(decode_image(content, upright=False))


def _as_array(image: Image.Image) -> Bytes:
    pixels = np.asarray(flatten(image))
    return pixels[..., None] if pixels.ndim == 2 else pixels

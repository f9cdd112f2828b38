"""Many small pictures in one file: MNIST's idx files, and what a file holds, gzipped or not."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError

_IDX_START = b"\0\0\x08"
"""Of an array of unsigned bytes; the number of axes follows."""
_CHUNK = 1 << 20
_MOST_BYTES = 1 << 30


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array in an idx file of bytes, gzipped or not."""
    content = read_decompressed(path)
    if content[:3] != _IDX_START or not 1 <= (axes := content[3] if len(content) > 3 else 0) <= 4:
        raise ImageFileError(
            f"{path} is not an idx file of bytes; MNIST's are called train-images-idx3-ubyte and so on"
        )
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4))
    if 0 in shape or len(content) != start + math.prod(shape):
        raise ImageFileError(
            f"{path} is cut short or damaged: its header says {' × '.join(map(str, shape))} values, got "
            f"{max(0, len(content) - start)}; fetch it again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def is_gzipped(path: Path) -> bool:
    """Whether a file begins as a gzip file."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def read_decompressed(path: Path) -> bytearray:
    """What a file holds, unpacked if it is gzipped; read by and by, so that memory holds it once."""
    content = bytearray()
    try:
        with gzip.open(path) if is_gzipped(path) else path.open("rb") as file:
            while len(content) <= _MOST_BYTES and (chunk := file.read(_CHUNK)):
                content += chunk
    except (OSError, EOFError, zlib.error) as error:
        raise ImageFileError(f"{path} cannot be read ({error})") from None
    if len(content) > _MOST_BYTES:
        raise ImageFileError(f"{path} must have at most {_MOST_BYTES:,} bytes, uncompressed")
    return content

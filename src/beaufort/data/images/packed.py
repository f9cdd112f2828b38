"""Many small pictures in one file: MNIST's idx files, and what a file holds, gzipped or not."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError

_IDX_UINT8 = 0x08
_IDX_AXES = 4
_CHUNK = 1 << 20
_MOST_BYTES = 1 << 30


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array in an idx file of bytes, gzipped or not."""
    content = read_packed(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _IDX_UINT8:
        raise ImageFileError(
            f"{path} is not an idx file of bytes; MNIST's are called train-images-idx3-ubyte and so on"
        )
    axes = content[3]
    if not 1 <= axes <= _IDX_AXES:
        raise ImageFileError(
            f"{path} must have 1 to {_IDX_AXES} axes, got {axes}; it is damaged: fetch it again"
        )
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes))
    if 0 in shape or len(content) != start + math.prod(shape):
        raise ImageFileError(
            f"{path} is cut short or damaged: its header says {' × '.join(map(str, shape))} values, got "
            f"{max(0, len(content) - start)}; fetch it again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_packed(path: Path) -> bytearray:
    """What a file holds, unpacked if it is gzipped; read by and by, so that memory holds it once."""
    content = bytearray()
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            while len(content) <= _MOST_BYTES and (chunk := file.read(_CHUNK)):
                content += chunk
    except (OSError, EOFError, zlib.error) as error:
        raise ImageFileError(f"{path} cannot be read ({error})") from None
    if len(content) > _MOST_BYTES:
        raise ImageFileError(f"{path} must have at most {_MOST_BYTES:,} bytes, uncompressed")
    return content

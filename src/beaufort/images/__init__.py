"""Pictures in files: read with care, cropped as the published sets were, written whole or not at all."""

from __future__ import annotations

from beaufort.images.crop import center_crop, flatten, resize_exactly, resize_short_side
from beaufort.images.files import draft, is_leftover, remove_leftover, remove_leftovers, write_bytes
from beaufort.images.packed import Labeled, read_cifar, read_idx
from beaufort.images.read import (
    MAX_PIXELS,
    MAX_SIDE,
    SUFFIXES,
    decode_image,
    is_folder,
    is_picture_name,
    pixel_count,
    read_image,
)
from beaufort.images.write import FORMATS, Format, encode, format_of

__all__ = [
    "FORMATS",
    "MAX_PIXELS",
    "MAX_SIDE",
    "SUFFIXES",
    "Format",
    "Labeled",
    "center_crop",
    "decode_image",
    "draft",
    "encode",
    "flatten",
    "format_of",
    "is_folder",
    "is_leftover",
    "is_picture_name",
    "pixel_count",
    "read_cifar",
    "read_idx",
    "read_image",
    "remove_leftover",
    "remove_leftovers",
    "resize_exactly",
    "resize_short_side",
    "write_bytes",
]

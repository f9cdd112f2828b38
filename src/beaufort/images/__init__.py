"""Pictures in files: read with care, cropped as the published sets were, encoded."""

from __future__ import annotations

from beaufort.images.crop import center_crop, flatten, resize_exactly, resize_short_side
from beaufort.images.framing import center_box, resize_window, short_side_size, window
from beaufort.images.packed import read_idx, read_packed
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
    "center_box",
    "center_crop",
    "decode_image",
    "encode",
    "flatten",
    "format_of",
    "is_folder",
    "is_picture_name",
    "pixel_count",
    "read_idx",
    "read_image",
    "read_packed",
    "resize_exactly",
    "resize_short_side",
    "resize_window",
    "short_side_size",
    "window",
]

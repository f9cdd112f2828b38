"""Reading, resizing, cropping and writing of image files."""

from __future__ import annotations

from beaufort.data.images.framing import (
    Box,
    center_box,
    columns_first,
    crop_box,
    resize_crop,
    short_side_size,
)
from beaufort.data.images.read import (
    MAX_PIXELS,
    MAX_SIDE,
    SUFFIXES,
    decode_file,
    decode_image,
    decode_pixels,
    flatten,
    is_folder,
    is_image_name,
    pixel_count,
    plain_mode,
    read_image,
)
from beaufort.data.images.write import FORMATS, Format, encode, format_of

__all__ = [
    "FORMATS",
    "MAX_PIXELS",
    "MAX_SIDE",
    "SUFFIXES",
    "Box",
    "Format",
    "center_box",
    "columns_first",
    "crop_box",
    "decode_file",
    "decode_image",
    "decode_pixels",
    "encode",
    "flatten",
    "format_of",
    "is_folder",
    "is_image_name",
    "pixel_count",
    "plain_mode",
    "read_image",
    "resize_crop",
    "short_side_size",
]

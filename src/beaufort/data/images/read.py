"""From a file that may hold anything to an 8-bit image.

What a file is called does not matter; its content decides. What comes out has mode L, LA, RGB or RGBA:

* palette images become RGB, or RGBA if a color is transparent; bilevel ones become grey;
* CMYK, YCbCr and the like become RGB;
* 16-bit values lose their low byte (v >> 8);
* the rotation that a camera noted in EXIF is carried out;
* more than one frame, floating-point values, and more than `MAX_PIXELS` pixels or `MAX_SIDE` in a row or
  column are refused, the last before anything is decoded.

Only the decoders in `READABLE` are offered a file. Pillow has many more, and one of them, for EPS, starts a
program.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import IO

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from beaufort._core.errors import BeaufortError, ImageFileError

MAX_PIXELS = 100_000_000
"""Height × width above which an image is refused, from its header."""

MAX_SIDE = 65_535
"""Height and width above which an image is refused, from its header.

It is the most that JPEG can have. Pillow keeps an address for each row, so that an image of 1 × 10⁸ pixels
would take twelve times its own memory.
"""

READABLE = ("JPEG", "PNG", "BMP", "GIF", "PPM", "TIFF", "WEBP", "AVIF", "JPEG2000", "TGA")
"""The formats that are read, as Pillow calls them, the usual ones first."""

SUFFIXES = frozenset(
    {".avif", ".bmp", ".gif", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg", ".png", ".tga"}
    | {".tif", ".tiff", ".webp", ".pbm", ".pgm", ".pnm", ".ppm"}
)
"""Endings, in lower case, of the files that are taken for images when a folder is read."""

_MODES = {
    "1": "L",
    "L": "L",
    "LA": "LA",
    "La": "LA",
    "P": "RGB",
    "PA": "RGBA",
    "RGB": "RGB",
    "RGBA": "RGBA",
    "RGBX": "RGB",
    "RGBa": "RGBA",
    "CMYK": "RGB",
    "HSV": "RGB",
    "YCbCr": "RGB",
}
_AT_ONCE = 1 << 16
"""Bytes of a file that are read at once, as Pillow does after the header."""
_EMPTY = "the file is empty (0 bytes)"
_WITH_ALPHA = {"L": "LA", "RGB": "RGBA"}


def is_image_name(name: str) -> bool:
    """Whether a file of this name is looked at when a folder is read; hidden files are not.

    >>> is_image_name("ILSVRC2012_val_00000001.JPEG"), is_image_name("labels.csv")
    (True, False)
    """
    return not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, or leads to one; a link that leads nowhere, or to itself, does not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def read_image(path: Path, *, upright: bool = True) -> Image.Image:
    """The image in a file, mode L, LA, RGB or RGBA.

    Args:
        path: a regular file, or a link to one.
        upright: turn the image as its EXIF data say. The published sets were made without.
    """
    try:
        with _opened(path) as file:
            return _decoded(file, upright)
    except BeaufortError as error:
        error.add_note(f"in {path}")
        raise


def pixel_count(path: Path) -> int:
    """Height × width as the header of a file says; 0 where none can be read. Nothing is decoded."""
    try:
        with _opened(path) as file, Image.open(file, formats=READABLE) as opened:
            return opened.width * opened.height
    except Exception:  # `read_image` says what is wrong
        return 0


def decode_image(content: bytes, *, upright: bool = True) -> Image.Image:
    """The image in the bytes of a file, as `read_image` gives it, and refused for the same reasons."""
    if not content:
        raise ImageFileError(_EMPTY)
    return _decoded(io.BytesIO(content), upright)


def _decoded(source: IO[bytes], upright: bool) -> Image.Image:
    try:
        with Image.open(source, formats=READABLE) as opened:
            _check_header(opened)
            opened.load()
            return plain_mode(_turned(opened) if upright else opened)
    except BeaufortError:
        raise
    except UnidentifiedImageError:
        raise ImageFileError(
            "the file is not an image in a supported format, or its beginning is damaged"
        ) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageFileError(
            f"an image must have at most {MAX_PIXELS:,} pixels; make it smaller first"
        ) from None
    except MemoryError:
        raise ImageFileError("the image does not fit into memory; make it smaller first") from None
    except Exception as error:  # a decoder that meets hostile bytes may raise anything
        raise ImageFileError(f"the image is damaged or cut short ({error})") from error


def _opened(path: Path) -> IO[bytes]:
    """A file, opened once; refused is what would block (a pipe), or is no file, or has no content."""
    try:
        found = path.stat()
        if stat.S_ISREG(found.st_mode) and found.st_size:
            return path.open("rb", buffering=_AT_ONCE)
    except OSError as error:
        raise ImageFileError(f"the file cannot be read ({error.strerror or error})") from None
    if not stat.S_ISREG(found.st_mode):
        raise ImageFileError("this is not a regular file; only files and links to files are read")
    raise ImageFileError(_EMPTY)


def _check_header(opened: Image.Image) -> None:
    width, height = opened.size
    if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE:
        raise ImageFileError(
            f"an image must have at most {MAX_PIXELS:,} pixels and {MAX_SIDE:,} on a side, got "
            f"{height} × {width}; make it smaller first"
        )
    # to count the frames of a TIFF takes minutes if there are many; to see that there is a second does not
    if opened.format != "MPO" and getattr(opened, "is_animated", False):
        raise ImageFileError(
            "an image must have one frame, got several; save the one you need as a file of its own"
        )


def _turned(opened: Image.Image) -> Image.Image:
    try:
        orientation = opened.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # notes that cannot be read turn nothing
        return opened
    return ImageOps.exif_transpose(opened) if orientation in range(2, 9) else opened


def plain_mode(image: Image.Image) -> Image.Image:
    """The image in one of the four modes, without notes, profiles or a link to its file."""
    if image.mode.startswith("I"):
        return _from_16_bit(image)
    if image.mode not in _MODES:
        raise ImageFileError(
            "an image must have grey values, RGB, CMYK or a palette, in integers of up to 16 bits, got "
            f"Pillow's mode {image.mode!r}; save it as 8-bit RGB or grey first"
        )
    mode = _MODES[image.mode]
    if "transparency" in image.info:
        mode = _WITH_ALPHA.get(mode, mode)
    plain = image if image.mode == mode else image.convert(mode)  # a copy would take a tenth of the time
    plain.info = {}
    return plain


def _from_16_bit(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise ImageFileError(
            f"an image must have integer values of up to 16 bits, got {values.min()} to {values.max()}; "
            "save it as 8-bit grey first"
        )
    return Image.fromarray((values.astype(np.uint16) >> 8).astype(np.uint8))


def flatten(image: Image.Image) -> Image.Image:
    """The image laid on white, mode L or RGB; one without transparency is given back as it is."""
    if image.mode not in ("LA", "RGBA"):
        return image
    colors = image.mode.removesuffix("A")
    white = Image.new(colors, image.size, "white")
    white.paste(image.convert(colors), mask=image.getchannel("A"))
    return white

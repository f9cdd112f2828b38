"""Decoding of untrusted image files to 8-bit images.

The format is detected from the content. The result has mode L, LA, RGB or RGBA:

* palette images become RGB, or RGBA if a color is transparent; bilevel images become grayscale;
* CMYK, YCbCr and similar modes become RGB;
* 16-bit values lose their low byte (v >> 8);
* the EXIF orientation is applied, unless this is disabled;
* images with several frames, floating-point values, more than `MAX_PIXELS` pixels, or sides above `MAX_SIDE`
  are rejected, the last two before anything is decoded.

Only the formats in `READABLE` are decoded. Pillow supports many more, and its EPS decoder runs a program.

`decode_file` and `decode_pixels` return arrays. Where simplejpeg is installed (extra jpeg), it decodes plain
JPEG files for them, to the pixels of Pillow in less time.
"""

from __future__ import annotations

import importlib
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, ImageFileError
from beaufort._core.optional import installed

_T = TypeVar("_T")

MAX_PIXELS = 100_000_000
"""Maximum of height × width."""

MAX_SIDE = 65_535
"""Maximum of height and width, which is the limit of JPEG.

Pillow keeps an address for each row, so an image of 1 × 10⁸ pixels would take twelve times its own memory.
"""

READABLE = ("JPEG", "PNG", "BMP", "GIF", "PPM", "TIFF", "WEBP", "AVIF", "JPEG2000", "TGA")
"""Formats that are decoded, by their names in Pillow."""

SUFFIXES = frozenset(
    {".avif", ".bmp", ".gif", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg", ".png", ".tga"}
    | {".tif", ".tiff", ".webp", ".pbm", ".pgm", ".pnm", ".ppm"}
)
"""Extensions of image files in lower case."""

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
_BUFFER_BYTES = 1 << 16
"""Buffer size, as Pillow uses after the header."""
_JPEG_BYTES = 1 << 26
"""Most that is read of a JPEG file for simplejpeg; Pillow reads longer ones in parts."""
_JPEG_COLORS = {"YCbCr": "RGB", "Gray": "GRAY"}
_EMPTY = "the file is empty (0 bytes)"
_WITH_ALPHA = {"L": "LA", "RGB": "RGBA"}


def is_image_name(name: str) -> bool:
    """Return whether a file name is that of an image; hidden files are not.

    >>> is_image_name("ILSVRC2012_val_00000001.JPEG"), is_image_name("labels.csv")
    (True, False)
    """
    return not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a directory or a link to one; False for broken links."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def read_image(path: Path, *, upright: bool = True) -> Image.Image:
    """Return the image in a file, with mode L, LA, RGB or RGBA.

    Args:
        path: a regular file, or a link to one.
        upright: apply the EXIF orientation. The published sets were made without it.
    """
    return _read(path, lambda file: _decoded(file, upright))


def decode_file(path: Path) -> Bytes:
    """Return the image in a file as an array `(h, w, 1 or 3)`, on white, without the EXIF orientation."""
    return _read(path, _pixels)


def _read(path: Path, decode: Callable[[IO[bytes]], _T]) -> _T:
    try:
        with _opened(path) as file:
            return decode(file)
    except BeaufortError as error:
        error.add_note(f"in {path}")
        raise


def pixel_count(path: Path) -> int:
    """Return height × width from the header of a file; 0 if it cannot be read."""
    try:
        with _opened(path) as file, Image.open(file, formats=READABLE) as opened:
            return opened.width * opened.height
    except Exception:  # `read_image` reports it
        return 0


def decode_image(content: bytes, *, upright: bool = True) -> Image.Image:
    """Return the image in the bytes of a file, as `read_image` does."""
    return _decoded(_stream(content), upright)


def decode_pixels(content: bytes) -> Bytes:
    """Return the image in the bytes of a file, as `decode_file` does."""
    return _pixels(_stream(content))


def _stream(content: bytes) -> IO[bytes]:
    if not content:
        raise ImageFileError(_EMPTY)
    return io.BytesIO(content)


def _decoded(source: IO[bytes], upright: bool) -> Image.Image:
    with _checked(source) as opened:
        opened.load()
        return plain_mode(_turned(opened) if upright else opened)


def _pixels(source: IO[bytes]) -> Bytes:
    with _checked(source) as opened:
        pixels = _plain_jpeg(opened, source)
        if pixels is None:
            opened.load()
            pixels = np.asarray(flatten(plain_mode(opened)))
        return pixels[..., None] if pixels.ndim == 2 else pixels


@cache
def _simplejpeg() -> Any:
    return importlib.import_module("simplejpeg") if installed("simplejpeg") else None


def _plain_jpeg(opened: Image.Image, source: IO[bytes]) -> Bytes | None:
    """Return the pixels of an intact YCbCr or gray JPEG file as simplejpeg decodes it; None for Pillow."""
    if opened.format != "JPEG" or (simplejpeg := _simplejpeg()) is None:
        return None
    source.seek(0)
    content = source.read(_JPEG_BYTES)
    try:
        height, width, colors, _ = simplejpeg.decode_jpeg_header(content)
        if (width, height) != opened.size or colors not in _JPEG_COLORS:
            return None
        pixels: Bytes = simplejpeg.decode_jpeg(content, _JPEG_COLORS[colors])
    except ValueError:  # also for damage that Pillow tolerates
        return None
    pixels.flags.writeable = False  # as those of Pillow
    return pixels


@contextmanager
def _checked(source: IO[bytes]) -> Iterator[Image.Image]:
    """Open an image whose size is allowed; all that goes wrong becomes an `ImageFileError`."""
    try:
        with Image.open(source, formats=READABLE) as opened:
            _check_header(opened)
            yield opened
    except BeaufortError:
        raise
    except UnidentifiedImageError:
        raise ImageFileError(
            "the file is not an image in a supported format, or its beginning is damaged"
        ) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageFileError(f"the image has more than {MAX_PIXELS:,} pixels") from None
    except MemoryError:
        raise ImageFileError("the image does not fit into memory") from None
    except Exception as error:  # decoders may raise anything on hostile bytes
        raise ImageFileError(f"the image is damaged or truncated ({error})") from error


def _opened(path: Path) -> IO[bytes]:
    """Open a regular file that is not empty; opening a pipe would block."""
    try:
        found = path.stat()
        if stat.S_ISREG(found.st_mode) and found.st_size:
            return path.open("rb", buffering=_BUFFER_BYTES)
    except OSError as error:
        raise ImageFileError(f"cannot read the file: {error.strerror or error}") from None
    if not stat.S_ISREG(found.st_mode):
        raise ImageFileError("this is not a regular file")
    raise ImageFileError(_EMPTY)


def _check_header(opened: Image.Image) -> None:
    width, height = opened.size
    if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE:
        raise ImageFileError(
            f"an image must have at most {MAX_PIXELS:,} pixels and sides of at most {MAX_SIDE:,}, got "
            f"{height} × {width}"
        )
    # counting the frames of a TIFF takes minutes if there are many; checking for a second one does not
    if opened.format != "MPO" and getattr(opened, "is_animated", False):
        raise ImageFileError("the image has several frames; save one frame as a file")


def _turned(opened: Image.Image) -> Image.Image:
    try:
        orientation = opened.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # ignore EXIF data that cannot be read
        return opened
    return ImageOps.exif_transpose(opened) if orientation in range(2, 9) else opened


def plain_mode(image: Image.Image) -> Image.Image:
    """Return an image with one of the four modes, without metadata or a link to its file."""
    if image.mode.startswith("I"):
        return _from_16_bit(image)
    if image.mode not in _MODES:
        raise ImageFileError(f"unsupported image mode {image.mode!r}; save it as 8-bit RGB or grayscale")
    mode = _MODES[image.mode]
    if "transparency" in image.info:
        mode = _WITH_ALPHA.get(mode, mode)
    plain = image if image.mode == mode else image.convert(mode)  # copying takes a tenth of the time
    plain.info = {}
    return plain


def _from_16_bit(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise ImageFileError(
            f"values of an image must have up to 16 bits, got {values.min()} to {values.max()}; save it as "
            "8-bit grayscale"
        )
    return Image.fromarray((values.astype(np.uint16) >> 8).astype(np.uint8))


def flatten(image: Image.Image) -> Image.Image:
    """Return an image on a white background, with mode L or RGB."""
    if image.mode not in ("LA", "RGBA"):
        return image
    colors = image.mode.removesuffix("A")
    white = Image.new(colors, image.size, "white")
    white.paste(image.convert(colors), mask=image.getchannel("A"))
    return white

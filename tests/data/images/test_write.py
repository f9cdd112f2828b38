"""Images as files of every format."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import ImageFileError
from beaufort.data.images import FORMATS, encode


def noise(mode: str) -> Image.Image:
    pixels = np.random.default_rng(1).integers(0, 256, (20, 24, 4), np.uint8)
    return Image.fromarray(pixels).convert(mode)


@pytest.mark.parametrize("kind", [name for name, kind in FORMATS.items() if kind.lossless])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_lossless_formats_keep_every_value(kind: str, mode: str) -> None:
    image = noise(mode)
    if not FORMATS[kind].alpha:
        image = image.convert("RGB")
    back = Image.open(io.BytesIO(encode(image, FORMATS[kind])))
    np.testing.assert_array_equal(np.asarray(back), np.asarray(image))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
@pytest.mark.parametrize("kind", FORMATS)
def test_every_mode_can_be_written_as_every_format(kind: str, mode: str) -> None:
    content = encode(noise(mode), FORMATS[kind])
    assert Image.open(io.BytesIO(content)).size == (24, 20)
    assert content == encode(noise(mode), FORMATS[kind])


def test_transparent_pixels_are_white_in_jpeg() -> None:
    clear = Image.new("RGBA", (16, 16), (200, 0, 0, 0))
    back = Image.open(io.BytesIO(encode(clear, FORMATS["jpeg"])))
    assert np.asarray(back).min() == 255


def test_unsupported_values_of_a_format_are_reported() -> None:
    with pytest.raises(ImageFileError, match="WEBP"):
        encode(Image.new("L", (20_000, 16)), FORMATS["webp"])

"""Sizes and crops as the published sets have them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from beaufort.images import center_crop, flatten, resize_exactly, resize_short_side

SIDES = st.integers(16, 700)


@given(SIDES, SIDES)
def test_the_short_side_becomes_256_and_the_crop_fits(width: int, height: int) -> None:
    resized = resize_short_side(Image.new("L", (width, height)), 256)
    assert min(resized.size) == 256
    assert center_crop(resized, 224).size == (224, 224)


@pytest.mark.parametrize(("size", "expected"), [((500, 375), (341, 256)), ((333, 500), (256, 384))])
def test_the_long_side_is_rounded_down(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert resize_short_side(Image.new("L", size), 256).size == expected


def test_the_crop_is_in_the_middle() -> None:
    pixels = np.arange(256 * 341, dtype=np.uint32).reshape(256, 341).astype(np.uint8)
    cropped = np.asarray(center_crop(Image.fromarray(pixels), 224))
    np.testing.assert_array_equal(cropped, pixels[16:240, 58:282])  # round(58.5) is 58


def test_a_picture_of_the_right_size_is_left_alone() -> None:
    image = Image.new("RGB", (64, 64))
    assert resize_exactly(image, 64) is image
    assert resize_exactly(Image.new("RGB", (80, 60)), 64).size == (64, 64)
    assert flatten(image) is image


def test_half_transparent_black_is_grey_on_white() -> None:
    assert np.asarray(flatten(Image.new("LA", (4, 4), (0, 128)))).tolist() == [[127] * 4] * 4

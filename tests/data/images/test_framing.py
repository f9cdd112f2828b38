"""Resizing and cropping arrays: the pixels of Pillow, to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort.data import PreparedImages, Step, load_dataset
from beaufort.data.images import center_box, crop_box, flatten, read_image, resize_crop, short_side_size
from beaufort.data.images.framing import Box, columns_first
from beaufort.suites import get_suite

SIDES = st.integers(1, 90)
OLD_PILLOW = int(PIL.__version__.partition(".")[0]) < 13


def random_image(seed: int, height: int, width: int, channels: int) -> Bytes:
    """Noise, or white: the largest possible sum."""
    if seed % 5 == 0:
        return np.full((height, width, channels), 255, np.uint8)
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)


def by_pillow(pixels: Bytes, size: tuple[int, int], box: Box | None) -> Bytes:
    image = Image.fromarray(pixels if pixels.shape[-1] == 3 else pixels[..., 0])
    image = image.resize(size, Image.Resampling.BILINEAR)
    image = image if box is None else image.crop(box)
    return np.asarray(image).reshape(image.height, image.width, -1)


def check(pixels: Bytes, size: tuple[int, int], box: Box | None) -> None:
    if not (OLD_PILLOW and columns_first(pixels.shape[:2], size)):
        np.testing.assert_array_equal(resize_crop(pixels, size, box), by_pillow(pixels, size, box))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 999), SIDES, SIDES, SIDES, SIDES, st.sampled_from([1, 3]), st.integers(1, 120))
def test_any_size_and_crop(
    seed: int, height: int, width: int, tall: int, wide: int, n: int, side: int
) -> None:
    pixels = random_image(seed, height, width, n)
    check(pixels, (wide, tall), None)
    check(pixels, (wide, tall), center_box(wide, tall, side))


@given(st.integers(16, 700), st.integers(16, 700))
def test_the_short_side_becomes_256_and_the_long_one_is_rounded_down(width: int, height: int) -> None:
    size = short_side_size(width, height, 256)
    assert min(size) == 256
    exact = 256 * max(width, height) / min(width, height)
    assert exact - 1 < max(size) <= exact
    assert (size[0] < size[1]) <= (width < height)


@pytest.mark.parametrize(
    ("width", "height"),
    [(500, 375), (375, 500), (341, 256), (256, 384), (257, 256), (16, 16), (1200, 900), (90, 700), (700, 90)],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_photos_for_imagenet(width: int, height: int, channels: int) -> None:
    size = short_side_size(width, height, 256)
    check(random_image(1, height, width, channels), size, center_box(*size, 224))


@pytest.mark.parametrize(
    ("before", "size"),
    [
        ((1, 3000), (16, 16)),
        ((3000, 1), (16, 16)),
        ((2, 5000), (640, 16)),
        ((2, 2), (1000, 3)),
        ((1, 1), (40, 40)),
    ],
)
def test_extreme_sizes(before: tuple[int, int], size: tuple[int, int]) -> None:
    check(random_image(2, *before, 3), size, None)
    check(random_image(5, *before, 1), size, center_box(*size, 16))


@pytest.mark.skipif(OLD_PILLOW, reason="Pillow 13 was the first to begin with the columns")
@pytest.mark.parametrize("lost", [57, 58, 59, 60, 61, 62, 63])
def test_when_pillow_resizes_columns_first(lost: int) -> None:
    pixels = random_image(3, 100, 80, 3)
    assert columns_first((100, 80), (50, 100 - lost)) == (lost > 60)
    check(pixels, (50, 100 - lost), None)


def test_only_the_crop_of_a_long_strip_is_computed() -> None:
    pixels = random_image(4, 16, 40_000, 3)
    size = short_side_size(40_000, 16, 1600)  # four million columns, of which a few are wanted
    out = resize_crop(pixels, size, center_box(*size, 64))
    assert out.shape == (64, 64, 3)
    middle = pixels[:, 19_990:20_010]
    part = by_pillow(middle, (2000, 1600), center_box(2000, 1600, 64))
    np.testing.assert_array_equal(out, part)


def test_crops_are_black_outside_the_image() -> None:
    pixels = random_image(1, 4, 6, 3)
    out = crop_box(pixels, Box(-1, 2, 7, 5))
    assert out.shape == (3, 8, 3)
    np.testing.assert_array_equal(out[:2, 1:7], pixels[2:])
    assert not np.concatenate([out[2].ravel(), out[:, 0].ravel(), out[:, 7].ravel()]).any()


def test_views_and_read_only_arrays() -> None:
    pixels = random_image(1, 60, 80, 3)
    box = center_box(40, 30, 20)
    turned = pixels[::-1, ::-1]
    np.testing.assert_array_equal(resize_crop(turned, (40, 30), box), by_pillow(turned.copy(), (40, 30), box))
    pixels.flags.writeable = False
    np.testing.assert_array_equal(resize_crop(pixels, (40, 30), box), by_pillow(pixels, (40, 30), box))


MODES = ("L", "RGB", "RGBA", "LA", "P", "CMYK", "1")


@pytest.mark.parametrize("suite", ["imagenet-c", "tiny-imagenet-c", "mnist-c"])
def test_preparation_equals_pillow_for_all_formats(suite: str, tmp_path: Path) -> None:
    folder = tmp_path / "a class"
    folder.mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a camera; datasets are read as they are stored
    for mode in MODES:
        drawn = Image.fromarray(random_image(1, 90, 120, 3)).convert(mode)
        drawn.save(folder / f"{mode}.{'jpg' if mode == 'CMYK' else 'png'}")
    Image.fromarray(random_image(1, 90, 120, 3)).save(folder / "turned.jpg", exif=exif)
    data, steps, gray = load_dataset(tmp_path), get_suite(suite).prepare, suite == "mnist-c"
    images = PreparedImages(data, steps, gray)
    assert len(data) == len(MODES) + 1
    for place, name in enumerate(data.ids):
        image = flatten(read_image(tmp_path / name, upright=False))
        image = image if gray else image.convert("RGB")
        for step in steps:
            image = _stepped(image, step)
        wanted = np.asarray(image).reshape(image.height, image.width, -1)
        made = images(place)
        assert isinstance(made, np.ndarray)
        np.testing.assert_array_equal(made, wanted)


def _stepped(image: Image.Image, step: Step) -> Image.Image:
    if step.action == "crop":
        return image.crop(center_box(*image.size, step.side))
    size = short_side_size(*image.size, step.side) if step.action == "resize" else (step.side, step.side)
    return image.resize(size, Image.Resampling.BILINEAR)

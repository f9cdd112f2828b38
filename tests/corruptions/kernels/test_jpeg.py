"""JPEG without a file, against OpenCV's library with one: equal to the last bit."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numba import njit

from beaufort.corruptions._kernels import cpu_ops
from beaufort.corruptions._kernels.cpu.jpeg_blocks import quantized, scales_of
from beaufort.testing._contracts import digit, example_image

OPS = cpu_ops()
RNG = np.random.default_rng(0)
NOISE = RNG.integers(0, 256, (1, 50, 61, 3)).astype(np.uint8)
HARSH = (RNG.integers(0, 2, (1, 50, 61, 3)) * 255).astype(np.uint8)
IMAGES = np.concatenate([example_image(50, 61)[None], NOISE, HARSH])


def through_a_file(images: np.ndarray, quality: int) -> np.ndarray:
    options = [cv2.IMWRITE_JPEG_QUALITY, quality]
    out = np.empty_like(images)
    for image, target in zip(images, out, strict=True):
        if image.shape[-1] == 1:
            code = cv2.imencode(".jpg", image, options)[1]
            target[..., 0] = cv2.imdecode(code, cv2.IMREAD_GRAYSCALE)
        else:
            code = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)[1]
            target[...] = cv2.imdecode(code, cv2.IMREAD_COLOR_RGB)
    return out


def check(images: np.ndarray, quality: int) -> None:
    images = np.ascontiguousarray(images)
    np.testing.assert_array_equal(OPS.jpeg(images, quality), through_a_file(images, quality))


@pytest.mark.parametrize("channels", [1, 3])
def test_every_quality(channels: int) -> None:
    for quality in range(1, 101):
        check(IMAGES[..., :channels], quality)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("height", [16, 17, 31, 32, 33, 47])
def test_every_edge(height: int, channels: int) -> None:
    """Blocks are filled up by what is repeated outside, one way down and another across."""
    for width in (16, 18, 31, 33):
        check(IMAGES[:, :height, :width, :channels], 40)


@pytest.mark.parametrize("width", range(1, 21))
def test_every_small_size(width: int) -> None:
    """Up to 4 columns the library repeats colors instead of enlarging them smoothly."""
    for height in range(1, 21):
        for channels, quality in ((1, 40), (3, 5), (3, 40), (3, 95)):
            check(IMAGES[1:, 3 : 3 + height, 3 : 3 + width, :channels], quality)


def test_more_blocks_in_a_row_than_are_worked_on_at_a_time() -> None:
    check(example_image(24, 1100)[None], 15)


def test_digits() -> None:
    check(np.stack([digit(variant=i) for i in range(6)]), 25)


def test_values_and_steps_are_quantized_like_integers() -> None:
    """Coefficients have eight times the values of 8 × 8 bytes less 128: 16 bits, and some for rounding."""

    @njit
    def levels(values: np.ndarray, step: int, scale: float, half: float) -> np.ndarray:
        return np.array([quantized(value, step, scale, half) for value in values])

    values = np.arange(-33000, 33001, dtype=np.int32)
    steps = np.arange(1, 256, dtype=np.int32)
    for step, scale, half in zip(steps, *scales_of(steps), strict=True):
        whole = np.sign(values) * ((abs(values) + 4 * step) // (8 * step)) * step
        np.testing.assert_array_equal(levels(values, step, scale, half), whole)

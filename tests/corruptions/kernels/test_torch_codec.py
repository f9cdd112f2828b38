"""JPEG of the torch backend against the CPU's: equal to the last bit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from beaufort.corruptions._kernels import cpu_ops, torch_ops  # noqa: E402
from beaufort.testing._contracts import digit, example_image  # noqa: E402

Put: TypeAlias = Callable[[np.ndarray], Any]

CPU: Any = cpu_ops()
ops: Any = torch_ops()
RNG = np.random.default_rng(0)
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
NOISE = RNG.integers(0, 256, (2, 50, 61, 3)).astype(np.uint8)
HARSH = (RNG.integers(0, 2, (1, 50, 61, 3)) * 255).astype(np.uint8)
IMAGES = np.concatenate([np.stack([example_image(50, 61, variant=i) for i in range(2)]), NOISE, HARSH])
QUALITIES = (1, 25, 100) if INTERPRETED else tuple(range(1, 101))


@pytest.fixture(scope="module")
def photos(shared: Path) -> np.ndarray:
    """Four photos, `(4, 224, 224, 3)`; in the interpreter a corner of two."""
    from beaufort.data import load_dataset

    dataset = load_dataset(shared / "data" / "imagenet_val_1k")
    side, count = (40, 2) if INTERPRETED else (224, 4)
    return np.stack([dataset[i].image[:side, :side] for i in range(count)])


def equal(put: Put, images: np.ndarray, quality: int) -> bool:
    images = np.ascontiguousarray(images)
    return np.array_equal(ops.jpeg(put(images), quality).cpu().numpy(), CPU.jpeg(images, quality))


def test_every_quality(put: Put) -> None:
    for quality in QUALITIES:
        assert equal(put, IMAGES, quality), quality
        assert equal(put, IMAGES[..., :1], quality), quality


@pytest.mark.parametrize("height", [16, 17, 31, 32, 33, 47])
@pytest.mark.parametrize("width", [16, 18, 31, 33])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_edge(put: Put, height: int, width: int, channels: int) -> None:
    """Blocks are filled up by what is repeated outside, one way down and another across."""
    assert equal(put, IMAGES[:, :height, :width, :channels], 40)


@pytest.mark.parametrize("width", range(1, 7))
def test_few_columns(put: Put, width: int) -> None:
    """Colors of up to 4 columns are repeated and not enlarged smoothly."""
    for height in (1, 2, 5, 17):
        assert equal(put, IMAGES[2:, :height, :width], 40)


def test_digits(put: Put) -> None:
    assert equal(put, np.stack([digit(variant=i) for i in range(6)]), 25)


def test_photos(put: Put, photos: np.ndarray) -> None:
    for quality in (7, 15, 25, 80):
        assert equal(put, photos, quality)


def test_alone_as_in_a_batch(put: Put) -> None:
    assert torch.equal(ops.jpeg(put(IMAGES), 10)[3:4], ops.jpeg(put(IMAGES[3:4].copy()), 10))

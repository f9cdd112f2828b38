"""Strokes and outlines of the torch backend against the CPU's: the same bits."""

from __future__ import annotations

import gzip
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
DIGITS = np.stack([digit(variant=i) for i in range(6)])
PHOTOS = np.stack([example_image(37, 45, variant=i) for i in range(3)])
NOISE = RNG.integers(0, 256, (3, 28, 28, 1)).astype(np.uint8)


def segments(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Up to seven lines per image: some with integer ends, one vertical, some outside."""
    count, height, width = images.shape[:3]
    x = np.sort(RNG.uniform(-3, width + 3, (count, 7, 2)), axis=-1)
    y = RNG.uniform(-3, height + 3, (count, 7, 2))
    lines = np.stack([x[..., 0], y[..., 0], x[..., 1], y[..., 1]], axis=-1)
    lines[:, 1] = np.rint(lines[:, 1])
    lines[0, 2, 2] = lines[0, 2, 0]
    return lines, np.arange(count) % 8


@pytest.mark.parametrize(("unit", "dash"), [(1.0, 0.0), (1.0, 2.0), (1.7, 3.4)])
@pytest.mark.parametrize("images", [DIGITS, PHOTOS], ids=["digits", "photos"])
def test_strokes(put: Put, images: np.ndarray, unit: float, dash: float) -> None:
    lines, counts = segments(images)
    counts[-1] = 7
    out = ops.strokes(put(images), lines, counts, unit=unit, dash=dash).cpu().numpy()
    assert np.array_equal(out, CPU.strokes(images, lines, counts, unit=unit, dash=dash))
    tensors = ops.strokes(put(images), put(lines), put(counts), unit=unit, dash=dash).cpu().numpy()
    assert np.array_equal(tensors, out)


@pytest.mark.parametrize("params", [(1.0, 0.1, 0.2), (2.0, 0.1, 0.3), (0.5, 0.1, 0.2)])
@pytest.mark.parametrize("images", [DIGITS, PHOTOS, NOISE], ids=["digits", "photos", "noise"])
def test_outline(put: Put, images: np.ndarray, params: tuple[float, float, float]) -> None:
    assert np.array_equal(ops.outline(put(images), *params).cpu().numpy(), CPU.outline(images, *params))


def test_outline_of_mnist(put: Put, shared: Path) -> None:
    packed = gzip.decompress((shared / "data" / "mnist" / "t10k-images-idx3-ubyte.gz").read_bytes())
    count = 20 if INTERPRETED else 1000
    images = np.frombuffer(packed, np.uint8, offset=16).reshape(-1, 28, 28, 1)[:count].copy()
    out = ops.outline(put(images), 1.0, 0.1, 0.2).cpu().numpy()
    assert np.array_equal(out, CPU.outline(images, 1.0, 0.1, 0.2))


def test_alone_as_in_a_batch(put: Put) -> None:
    lines, counts = segments(DIGITS)
    together = ops.strokes(put(DIGITS), lines, counts)
    assert torch.equal(together[3:4], ops.strokes(put(DIGITS[3:4]), lines[3:4], counts[3:4]))
    assert torch.equal(
        ops.outline(put(DIGITS), 1.0, 0.1, 0.2)[3:4], ops.outline(put(DIGITS[3:4]), 1.0, 0.1, 0.2)
    )

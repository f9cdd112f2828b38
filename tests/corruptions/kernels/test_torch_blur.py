"""Filters of the torch backend against the CPU's."""

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
SIDES = (19, 24) if INTERPRETED else (37, 45)
PLAIN = np.stack([np.full((*SIDES, 3), level, np.uint8) for level in (255, 200, 1)])
IMAGES = np.concatenate([np.stack([example_image(*SIDES, variant=i) for i in range(2)]), PLAIN])
DIGITS = np.stack([digit(variant=i) for i in range(3)])


@pytest.fixture(scope="module")
def photos(shared: Path) -> np.ndarray:
    """Four photos, `(4, 224, 224, 3)`; in the interpreter a corner of two."""
    from beaufort.data import load_dataset

    dataset = load_dataset(shared / "data" / "imagenet_val_1k")
    side, count = (20, 2) if INTERPRETED else (224, 4)
    return np.stack([dataset[i].image[:side, :side] for i in range(count)])


def same(out: Any, wanted: np.ndarray) -> bool:
    """The same bytes, but for a level here and there on a processor that rounds products before it adds.

    Plain areas are among them: one rounding more or less would cost them a level.
    """
    differ = np.abs(out.cpu().numpy().astype(int) - wanted.astype(int))
    return out.shape == wanted.shape and differ.max() <= 1 and bool((differ > 0).mean() < 1e-3)


@pytest.mark.parametrize("sigma", [0.1, 0.4, 0.5, 0.7, 1, 2.2, 6])
@pytest.mark.parametrize("nearest", [False, True])
def test_gaussian(put: Put, sigma: float, nearest: bool) -> None:
    for images in (IMAGES, DIGITS):
        wanted = CPU.gaussian(images, sigma, nearest=nearest)
        assert same(ops.gaussian(put(images), sigma, nearest=nearest), wanted)
        wanted = CPU.gaussian(images, sigma, horizontal=False, nearest=nearest)
        assert same(ops.gaussian(put(images), sigma, horizontal=False, nearest=nearest), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("border", ["nearest", "reflect"])
@pytest.mark.parametrize("sigma", [0, 0.1, 0.7, 2.44, 19.6, 70])
def test_smooth(put: Put, sigma: float, border: str, dtype: type[np.floating]) -> None:
    fields = RNG.uniform(-1, 1, (2, 28, 41)).astype(dtype)
    out = ops.smooth(put(fields), sigma, truncate=3.0, border=border).cpu().numpy()
    wanted = CPU.smooth(fields, sigma, truncate=3.0, border=border)
    assert out.dtype == dtype
    assert np.abs(out - wanted).max() <= 32 * np.finfo(dtype).eps * np.abs(wanted).max()


@pytest.mark.parametrize("radius", [0.3, 1, 2.5, 3, 6, 8, 10, 12.5])
def test_defocus(put: Put, radius: float) -> None:
    if INTERPRETED and radius > 10:
        pytest.skip("takes long")
    softness = 0.1 if radius <= 3 else 0.5
    for images, nearest in ((IMAGES, False), (DIGITS, True)):
        wanted = CPU.defocus(images, radius, softness, nearest=nearest)
        assert same(ops.defocus(put(images), radius, softness, nearest=nearest), wanted)


def test_defocus_beyond_16_bits(put: Put) -> None:
    """Towers of more than 256 white pixels."""
    if INTERPRETED:
        pytest.skip("takes long")
    images = np.concatenate([IMAGES[:1], PLAIN[:1]])
    assert same(ops.defocus(put(images), 130, 0.5), CPU.defocus(images, 130, 0.5))


@pytest.mark.parametrize(("radius", "sigma"), [(6, 1), (10, 3), (14.2, 8), (20, 15)])
def test_motion(put: Put, radius: float, sigma: float) -> None:
    for images in (IMAGES, DIGITS):
        angles = RNG.uniform(-180, 180, len(images))
        angles[:3] = 0, 45, -90
        wanted = CPU.motion(images, radius, sigma, angles)
        assert same(ops.motion(put(images), radius, sigma, put(angles)), wanted)
        assert same(ops.motion(put(images), radius, sigma, angles), wanted)


@pytest.mark.parametrize(("step", "zooms"), [(0.01, 7), (0.02, 11), (0.03, 11), (0.1, 31)])
@pytest.mark.parametrize("nearest", [False, True])
def test_zoom_average(put: Put, step: float, zooms: int, nearest: bool) -> None:
    if INTERPRETED and zooms > 20:
        pytest.skip("takes long")
    factors = tuple(1 + i * step for i in range(zooms))
    for images in (IMAGES, DIGITS):
        wanted = CPU.zoom_average(images, factors, nearest=nearest)
        assert same(ops.zoom_average(put(images), factors, nearest=nearest), wanted)


def test_photos(put: Put, photos: np.ndarray) -> None:
    angles = np.linspace(-45, 45, len(photos))
    assert same(ops.gaussian(put(photos), 3), CPU.gaussian(photos, 3))
    assert same(ops.defocus(put(photos), 6, 0.5), CPU.defocus(photos, 6, 0.5))
    assert same(ops.motion(put(photos), 15, 8, angles), CPU.motion(photos, 15, 8, angles))
    assert same(ops.zoom_average(put(photos), (1, 1.1, 1.2)), CPU.zoom_average(photos, (1, 1.1, 1.2)))


def test_alone_as_in_a_batch(put: Put) -> None:
    angles, part = np.linspace(-45, 45, len(IMAGES)), slice(1, 2)
    images, one = put(IMAGES), put(IMAGES[part].copy())
    fields = put(RNG.uniform(-1, 1, (3, 60, 60)).astype(np.float32))
    assert torch.equal(ops.gaussian(images, 1)[part], ops.gaussian(one, 1))
    assert torch.equal(ops.defocus(images, 3, 0.1)[part], ops.defocus(one, 3, 0.1))
    assert torch.equal(ops.motion(images, 10, 3, angles)[part], ops.motion(one, 10, 3, angles[part]))
    assert torch.equal(ops.zoom_average(images, (1, 1.1))[part], ops.zoom_average(one, (1, 1.1)))
    for sigma in (2, 50):
        whole = ops.smooth(fields, sigma, truncate=3.0, border="reflect")
        assert torch.equal(whole[part], ops.smooth(fields[part], sigma, truncate=3.0, border="reflect"))

"""Warps and cells of the torch backend against the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from beaufort.corruptions._kernels import cpu_ops, torch_ops  # noqa: E402
from beaufort.testing._contracts import digit, example_image  # noqa: E402
from tests.corruptions.kernels.rounding import same  # noqa: E402

Put: TypeAlias = Callable[[np.ndarray], Any]

CPU: Any = cpu_ops()
ops: Any = torch_ops()
RNG = np.random.default_rng(0)
PHOTOS = np.stack([example_image(37, 45, variant=i) for i in range(3)])
DIGITS = np.stack([digit(variant=i) for i in range(3)])


def matrices(count: int, seed: int = 0) -> np.ndarray:
    """Maps that turn and stretch, and shift by up to a few sides of an image."""
    rng = np.random.default_rng(seed)
    maps = rng.normal(0, 0.3, (count, 2, 3))
    maps[:, 0, 0] += 1
    maps[:, 1, 1] += 1
    maps[:, :, 2] = rng.normal(0, 40, (count, 2))
    return maps


def moves(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shape = images.shape[:3]
    right, down = (CPU.smooth(RNG.uniform(-1, 1, shape).astype(np.float32), 1.5) * 20 for _ in range(2))
    right[0, 0, 0], down[0, -1, -1] = -500, 500
    return right, down


@pytest.mark.parametrize("border", ["mirror", "zero"])
@pytest.mark.parametrize("images", [PHOTOS, DIGITS], ids=["photos", "digits"])
def test_affine(put: Put, images: np.ndarray, border: str) -> None:
    maps = matrices(len(images))
    maps[0] = [[1, 0, 0], [0, 1, 0]]
    out = ops.affine(put(images), maps, border=border).cpu().numpy()
    assert out.dtype == np.float32
    assert np.abs(out - CPU.affine(images, maps, border=border)).max() < 1e-4


@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("images", [PHOTOS, DIGITS], ids=["photos", "digits"])
def test_displace(put: Put, images: np.ndarray, nearest: bool) -> None:
    source = CPU.affine(images, matrices(len(images)), border="mirror")
    right, down = moves(images)
    out = ops.displace(put(source), put(right), put(down), nearest=nearest).cpu().numpy()
    assert same(out, CPU.displace(source, right, down, nearest=nearest))


@pytest.mark.parametrize("images", [PHOTOS, DIGITS], ids=["photos", "digits"])
def test_displace_zero(put: Put, images: np.ndarray) -> None:
    source = CPU.affine(images, matrices(len(images)), border="zero")
    right, down = moves(images)
    right[1], down[1] = 0, 0
    out = ops.displace_zero(put(source), put(right), put(down)).cpu().numpy()
    assert same(out, CPU.displace_zero(source, right, down))


@pytest.mark.parametrize("cells", [(5, 40), (14, 18), (22, 27), (37, 45)])
def test_soft_cells(put: Put, cells: tuple[int, int]) -> None:
    for softness in (0.0, 0.3, 1.0):
        counts = cells[0] * 0.97, cells[1] * 0.97
        wanted = CPU.soft_cells(PHOTOS, *counts, softness)
        assert np.array_equal(ops.soft_cells(put(PHOTOS), *counts, softness).cpu().numpy(), wanted)


def test_mix(put: Put) -> None:
    versions = [np.roll(PHOTOS, shift, axis=2) for shift in range(3)]
    weights = [0.5, 0.25 + 1 / 256, 0.25 - 1 / 256]
    exact = np.rint(sum(w * v.astype(float) for w, v in zip(weights, versions, strict=True)))
    wanted = CPU.mix(versions, weights)
    assert np.abs(wanted - exact).max() <= 1
    assert np.array_equal(ops.mix([put(v) for v in versions], weights).cpu().numpy(), wanted)


@pytest.mark.parametrize("cells", [(1, 1), (5, 40), (14, 18), (22, 27), (37, 45)])
def test_pixel_cells(put: Put, cells: tuple[int, int]) -> None:
    assert np.array_equal(ops.pixel_cells(put(PHOTOS), *cells).cpu().numpy(), CPU.pixel_cells(PHOTOS, *cells))


def test_cells_of_digits(put: Put) -> None:
    assert np.array_equal(ops.pixel_cells(put(DIGITS), 11, 8).cpu().numpy(), CPU.pixel_cells(DIGITS, 11, 8))


def test_cells_that_are_too_large() -> None:
    with pytest.raises(ValueError, match="at most 256"):
        ops.pixel_cells(torch.zeros((1, 16, 300, 1), dtype=torch.uint8), 4, 1)


def test_alone_as_in_a_batch(put: Put) -> None:
    maps, (right, down) = matrices(3), moves(PHOTOS)
    together = ops.affine(put(PHOTOS), maps, border="mirror")
    alone = ops.affine(put(PHOTOS[2:]), maps[2:], border="mirror")
    assert torch.equal(together[2:], alone)
    moved = ops.displace(together, put(right), put(down))
    assert torch.equal(moved[2:], ops.displace(alone, put(right[2:]), put(down[2:])))

"""Sweeps of the torch backend against the CPU's: equal to the last pixel."""

from __future__ import annotations

import os
from collections.abc import Callable
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
IMAGES = np.stack([example_image(26, 33, variant=i) for i in range(3)])
DIGITS = np.stack([digit(variant=i) for i in range(3)])
LEVELS = [(1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (4, 2)]


def offsets(images: np.ndarray, distance: int, sweeps: int, dtype: type = np.int8) -> np.ndarray:
    count, height, width = images.shape[:3]
    shape = (count, sweeps, height - 2 * distance, width - 2 * distance, 2)
    return RNG.integers(-distance, distance, shape).astype(dtype)


@pytest.mark.parametrize(("distance", "sweeps"), LEVELS)
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_copy_sweeps(put: Put, distance: int, sweeps: int, dtype: type) -> None:
    for images in (IMAGES, DIGITS):
        moves = offsets(images, distance, sweeps, dtype)
        out = ops.copy_sweeps(put(images), put(moves), distance)
        assert np.array_equal(out.cpu().numpy(), CPU.copy_sweeps(images, moves, distance))


def test_a_sweep_can_carry_a_pixel_through_the_image(put: Put) -> None:
    """If all take the value to their right, the last column but one runs through the whole row."""
    moves = np.zeros((len(IMAGES), 1, 22, 29, 2), np.int8)
    moves[..., 0] = 1
    out = ops.copy_sweeps(put(IMAGES), put(moves), 2).cpu().numpy()
    assert np.array_equal(out, CPU.copy_sweeps(IMAGES, moves, 2))
    assert (out[:, 3:-1, 3:-1] == IMAGES[:, 3:-1, -1:]).all()


@pytest.mark.parametrize(("distance", "sweeps"), LEVELS)
def test_swap_sweeps(put: Put, distance: int, sweeps: int) -> None:
    if INTERPRETED and distance > 2:
        pytest.skip("takes long")
    for images in (IMAGES, DIGITS):
        moves = offsets(images, distance, sweeps)
        gates = RNG.random(moves.shape[:-1]) < 0.5
        out = ops.swap_sweeps(put(images), put(gates), put(moves), distance)
        assert np.array_equal(out.cpu().numpy(), CPU.swap_sweeps(images, gates, moves, distance))


def test_arrays_of_the_host(put: Put) -> None:
    """Draws of the reference stream come as NumPy arrays."""
    moves = offsets(DIGITS, 1, 2)
    gates = RNG.random(moves.shape[:-1]) < 0.5
    assert torch.equal(ops.copy_sweeps(put(DIGITS), moves, 1), ops.copy_sweeps(put(DIGITS), put(moves), 1))
    out = ops.swap_sweeps(put(DIGITS), gates, moves, 1).cpu().numpy()
    assert np.array_equal(out, CPU.swap_sweeps(DIGITS, gates, moves, 1))


def test_alone_as_in_a_batch(put: Put) -> None:
    moves = offsets(IMAGES, 2, 2)
    together = ops.copy_sweeps(put(IMAGES), put(moves), 2)
    alone = ops.copy_sweeps(put(IMAGES[1:2].copy()), put(moves[1:2].copy()), 2)
    assert torch.equal(together[1:2], alone)

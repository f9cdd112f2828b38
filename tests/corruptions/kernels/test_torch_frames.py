"""Frames of films of the torch backend against the CPU's: the same bytes, to the last one."""

from __future__ import annotations

import math
import os
import subprocess
import sys
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
PHOTOS = np.stack([example_image(30, 37, variant=i) for i in range(2)])
DIGITS = np.stack([digit(variant=i) for i in range(2)])
ABOUT = (18.5, 16.0)
TURN = np.array([[math.cos(0.3), math.sin(0.3)], [-math.sin(0.3), math.cos(0.3)]])
MAPS = {
    "still": np.eye(2),
    "small": np.eye(2) / 0.4,
    "large": np.eye(2) / 1.1,
    "turned": TURN,
    "far": TURN * 9,
}
TILTS = {
    "still": np.eye(3),
    "tilted": np.array([[0.9, 0.2, 3.3], [-0.1, 1.1, -4.2], [0.004, -0.003, 1]]),
    "folded": np.array([[1, 0, 0], [0, 1, 0], [1, 0, -18]]),  # a column has no depth
}
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
SIDE = 7 if INTERPRETED else 25


def agrees(out: Any, wanted: np.ndarray, *, fused: bool = False) -> None:
    """Triton's interpreter has no fused products."""
    found = out.cpu().numpy()
    assert found.dtype == wanted.dtype
    assert same(found, wanted) if fused and INTERPRETED else np.array_equal(found, wanted)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("images", [PHOTOS, DIGITS], ids=["photos", "digits"])
def test_affine_frame(put: Put, images: np.ndarray, name: str) -> None:
    out = ops.affine_frame(put(images), MAPS[name], ABOUT, SIDE)
    agrees(out, CPU.affine_frame(images, MAPS[name], ABOUT, SIDE), fused=True)


@pytest.mark.parametrize("name", TILTS)
@pytest.mark.parametrize("images", [PHOTOS, DIGITS], ids=["photos", "digits"])
def test_perspective_frame(put: Put, images: np.ndarray, name: str) -> None:
    with np.errstate(divide="ignore", invalid="ignore"):  # by the interpreter's NumPy
        out = ops.perspective_frame(put(images), TILTS[name], SIDE)
    agrees(out, CPU.perspective_frame(images, TILTS[name], SIDE))


@pytest.mark.parametrize("images", [PHOTOS, DIGITS], ids=["photos", "digits"])
def test_add_frame(put: Put, images: np.ndarray) -> None:
    """Means are cut off, so that a quotient with another last bit would cost a level."""
    shape = (2, SIDE, SIDE, images.shape[3])
    total, there = np.zeros(shape, np.float32), put(np.zeros(shape, np.float32))
    for count, factor in enumerate((1, 1.004, 1.04, 1.4), 1):
        wanted = CPU.add_frame(total, images, np.eye(2) / factor, ABOUT, count)
        agrees(ops.add_frame(there, put(images), np.eye(2) / factor, ABOUT, count), wanted)
        agrees(there, total)


def test_frames_of_a_view(put: Put) -> None:
    """Images need not be contiguous."""
    view = put(np.ascontiguousarray(PHOTOS.transpose(3, 0, 2, 1))).permute(1, 3, 2, 0)
    agrees(ops.affine_frame(view, MAPS["large"], ABOUT, 9), CPU.affine_frame(PHOTOS, MAPS["large"], ABOUT, 9))
    tilt = TILTS["tilted"]
    agrees(ops.perspective_frame(view, tilt, 9), CPU.perspective_frame(PHOTOS, tilt, 9))


def test_run_down(put: Put) -> None:
    layers = np.random.default_rng(0).random((2, 9, 11))
    fractions = {-1: 0.05, 0: 0.1, 1: 0.15, 2: 0.7}
    wanted = CPU.run_down(layers, fractions)
    agrees(ops.run_down(put(layers), fractions), wanted)
    below = np.pad(layers, ((0, 0), (2, 1), (0, 0)))
    exact = 0.05 * below[:, 3:] + 0.1 * below[:, 2:-1] + 0.15 * below[:, 1:-2] + 0.7 * below[:, :-3]
    assert np.allclose(wanted, exact, rtol=1e-15)


@pytest.mark.nightly
def test_kernels_in_tritons_interpreter() -> None:
    """Without a GPU, the tests above run the kernels in Triton's interpreter."""
    pytest.importorskip("triton", reason="Triton is not installed")
    if INTERPRETED:
        pytest.skip("this is the interpreter")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "BEAUFORT_KERNELS": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "kernels and not digits",
        __file__,
    ]
    subprocess.run(command, check=True, env=environment)

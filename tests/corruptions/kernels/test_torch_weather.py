"""Fog, snow and drops of the torch backend against the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from beaufort.corruptions._kernels import cpu_ops, torch_ops  # noqa: E402
from beaufort.corruptions._kernels.torch.canny_edges import connect  # noqa: E402
from beaufort.corruptions._kernels.torch.spatter_edges import canny, depths  # noqa: E402
from beaufort.testing._contracts import example_image  # noqa: E402
from tests.corruptions.kernels.rounding import same  # noqa: E402

Put: TypeAlias = Callable[[np.ndarray], Any]

CPU: Any = cpu_ops()
ops: Any = torch_ops()
RNG = np.random.default_rng(0)
PHOTOS = np.stack([example_image(33, 47, variant=i) for i in range(3)])
NORMALS = RNG.standard_normal((3, 33, 47)).astype(np.float32)  # as the keyed stream has them


@pytest.mark.parametrize("decay", [3.0, 1.7, 1.4])
@pytest.mark.parametrize("size", [(33, 47), (64, 64), (16, 16)])
def test_plasma(put: Put, size: tuple[int, int], decay: float) -> None:
    """Equal to two units in the last place: where the map wraps, the CPU fuses no products."""
    noise = RNG.uniform(-1, 1, (2, 64 * 64 - 1)).astype(np.float32)
    out = ops.plasma(put(noise), 64, decay, *size).cpu().numpy()
    wanted = CPU.plasma(noise, 64, decay, *size)
    assert out.shape == wanted.shape
    assert out.dtype == np.float32
    assert np.abs(out - wanted).max() < 3e-7


@pytest.mark.parametrize("factor", [1, 1.25, 3, 4.5])
def test_flakes(put: Put, factor: float) -> None:
    for normals in (NORMALS, NORMALS.astype(np.float64)):
        out = ops.flakes(put(normals), 0.55, 0.3, factor, 0.85).cpu().numpy()
        assert same(out, CPU.flakes(NORMALS.astype(np.float64), 0.55, 0.3, factor, 0.85))


@pytest.mark.parametrize("mix", [0.8, 0.7, 0.55])
@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_snowfall(put: Put, mix: float, nearest: bool, channels: int) -> None:
    images = PHOTOS[..., :channels].copy()
    images[0, :8] = [[255, 0, 0][:channels]]
    layers = CPU.flakes(NORMALS.astype(np.float64), 0.55, 0.3, 2.5, 0.85)[..., 0]
    out = ops.snowfall(put(images), put(layers), mix, nearest=nearest).cpu().numpy()
    assert same(out, CPU.snowfall(images, layers, mix, nearest=nearest))


@pytest.mark.parametrize("params", [(0.65, 0.3, 1, 0.65, 1.5), (0.65, 0.1, 0.7, 0.69, 0.6)])
def test_mud_spots(put: Put, params: tuple[float, ...]) -> None:
    out = ops.mud_spots(put(NORMALS), *params).cpu().numpy()
    wanted = CPU.mud_spots(NORMALS.astype(np.float64), *params)
    assert out.dtype == np.float32
    assert np.abs(out - wanted).max() < 1e-6


DROPS = [
    (0.65, 0.3, 4, 0.69, 0.6),
    (0.65, 0.3, 2, 0.68, 0.5),
    (0.62, 0.1, 0.7, 0.7, 0.5),
    (0.65, 0.3, 1, 0.69, 0.5),
]


@pytest.mark.parametrize("params", [*DROPS, (0.1, 0.1, 4, 0.69, 0.5)], ids=str)
def test_water_drops(put: Put, params: tuple[float, ...]) -> None:
    """The same bits where OpenCV measures distances in floats, as on x86; the last one is dry all over."""
    out = ops.water_drops(put(NORMALS), *params).cpu().numpy()
    wanted = CPU.water_drops(NORMALS.astype(np.float64), *params)
    assert out.dtype == np.float32
    assert (np.abs(out - wanted) > 1e-6).mean() < 1e-3


def waters(shape: tuple[int, int] = (33, 47)) -> np.ndarray:
    """8-bit images that have weak and strong edges, noise, and nothing."""
    soft = cv2.GaussianBlur(RNG.integers(0, 256, shape).astype(np.uint8), (0, 0), 1.5)
    noise = RNG.integers(0, 256, shape).astype(np.uint8)
    return np.stack([soft, noise, example_image(*shape, variant=1)[..., 0], np.zeros_like(soft)])


def test_canny(put: Put) -> None:
    images = waters()
    out = canny(put(images), 50, 150).cpu().numpy()
    for labels, image in zip(out, images, strict=True):
        assert np.array_equal(labels == 2, cv2.Canny(image, 50, 150) == 255)


def test_connect_follows_a_long_chain(put: Put) -> None:
    """A spiral of ones that starts at a 2, and one that does not."""
    labels = np.zeros((2, 21, 21), np.uint8)
    for ring in range(0, 10, 2):
        labels[:, ring, ring : 21 - ring] = labels[:, ring : 21 - ring, 20 - ring] = 1
        labels[:, 20 - ring, ring : 21 - ring] = labels[:, ring + 2 : 21 - ring, ring] = 1
        labels[:, ring + 2, ring : ring + 3] = 1
    labels[0, 0, 0] = 2
    out = connect(put(labels)).cpu().numpy()
    assert np.array_equal(out[0] == 2, labels[0] > 0)
    assert np.array_equal(out[1], labels[1])


@pytest.mark.parametrize("shape", [(33, 47), (16, 300)])
def test_depths(put: Put, shape: tuple[int, int]) -> None:
    """A row of more than 128 pixels is more than one warp works on."""
    images = waters(shape)
    labels = canny(put(images), 50, 150)
    for depth, edges in zip(depths(labels).cpu().numpy(), labels.cpu().numpy(), strict=True):
        wanted = cv2.distanceTransform((edges != 2).astype(np.uint8), cv2.DIST_L2, 5)
        assert np.abs(depth - np.minimum(wanted, 20)).max() < 2e-4


def test_alone_as_in_a_batch(put: Put) -> None:
    noise = put(RNG.uniform(-1, 1, (3, 64 * 64 - 1)).astype(np.float32))
    assert torch.equal(ops.plasma(noise, 64, 2, 33, 47)[2:], ops.plasma(noise[2:], 64, 2, 33, 47))
    normals = put(NORMALS)
    for params in DROPS:
        assert torch.equal(ops.water_drops(normals, *params)[1:2], ops.water_drops(normals[1:2], *params))
    params = (0.65, 0.3, 1, 0.65, 1.5)
    assert torch.equal(ops.mud_spots(normals, *params)[1:2], ops.mud_spots(normals[1:2], *params))

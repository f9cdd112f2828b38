"""Kernels add in the documented order: NumPy gives the same bits in this order.

The other backend adds in the same order, and published pixels must stay reproducible.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort._core.compiled import FAST
from beaufort.corruptions._kernels import cpu_ops
from beaufort.corruptions._kernels.borders import border_index
from beaufort.corruptions._kernels.cpu import lanes as _lanes
from beaufort.corruptions._kernels.cpu.defocus_blur import disk_parts
from beaufort.corruptions._kernels.cpu.gaussian_blur import NARROW, gaussian_taps
from beaufort.corruptions._kernels.cpu.zoom_blur import zoom_positions
from beaufort.testing._contracts import example_image

OPS: Any = cpu_ops()
LANES = _lanes.LANES
intrinsics: Any = _lanes
fma, load, load_floats, one = intrinsics.fma, intrinsics.load, intrinsics.load_floats, intrinsics.one
pointer, splat, store = intrinsics.pointer, intrinsics.splat, intrinsics.store
RNG = np.random.default_rng(3)
SHAPES = ((61, 83, 3), (40, 33, 1), (5, 2, 3), (1, 1, 3), (70, 16, 3))
"""Lines of more, less and exactly as many values as a kernel takes at once."""


def photos(shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Return an image and independent random values."""
    height, width, channels = shape
    drawn = example_image(height, width)[..., :channels]
    return np.stack([drawn, RNG.integers(0, 256, shape, np.uint8)])


def fused(a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding: in double precision the product is exact, and so, nearly, the sum."""
    return (np.float64(a) * np.float64(b) + np.float64(c)).astype(np.float32)


def to_bytes(values: NDArray[Any]) -> Any:
    return np.clip(values, 0, 255).astype(np.uint8)


def weighed(values: NDArray[np.float32], taps: NDArray[np.float32], axis: int, border: str) -> Any:
    """Pairs of neighbors by their taps, nearest first, two pairs at a time."""
    radius, size = len(taps) - 1, values.shape[axis]
    index = border_index(size, radius, radius, border)

    def pair(k: int) -> Any:
        before, after = index[radius - k :][:size], index[radius + k :][:size]
        return values.take(before, axis) + values.take(after, axis)

    total = taps[0] * values
    for k in range(2, radius + 1, 2):
        total = total + fused(taps[k - 1], pair(k - 1), taps[k] * pair(k))
    return fused(taps[radius], pair(radius), total) if radius % 2 else total


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sigma", [0.8, 1.1, 3, 6])
def test_gaussian(sigma: float, shape: tuple[int, int, int]) -> None:
    images = photos(shape)
    taps = gaussian_taps(sigma, 4.0).astype(np.float32)
    assert len(taps) - 1 > NARROW
    wanted = images.astype(np.float32)
    for axis in (1, 2):
        wanted = weighed(wanted, taps, axis, "nearest")
    assert np.array_equal(OPS.gaussian(images, sigma), to_bytes(wanted))


@pytest.mark.parametrize("border", ["nearest", "reflect"])
@pytest.mark.parametrize("sigma", [0.5, 2.44, 12])
def test_smooth(sigma: float, border: str) -> None:
    fields = RNG.uniform(-1, 1, (2, 50, 67)).astype(np.float32)
    taps = gaussian_taps(sigma, 3.0).astype(np.float32)
    wanted = fields
    for axis in (1, 2):
        wanted = weighed(wanted, taps, axis, border)
    smooth = OPS.smooth(fields, sigma, truncate=3.0, border=border)
    assert np.array_equal(smooth, wanted)
    louder = OPS.smooth(fields, sigma, truncate=3.0, border=border, gain=12.2)
    assert np.array_equal(louder, wanted * np.float32(12.2))


def test_gain_without_smoothing_and_by_waves() -> None:
    fields = RNG.uniform(-1, 1, (1, 40, 50)).astype(np.float32)
    assert np.array_equal(OPS.smooth(fields, 0, gain=3.0), fields * np.float32(3))
    wide = OPS.smooth(fields, 70.0, truncate=3.0, border="reflect")
    louder = OPS.smooth(fields, 70.0, truncate=3.0, border="reflect", gain=3.0)
    assert np.array_equal(louder, wide * np.float32(3))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("angle", [-135.0, -50.0, 0.0, 20.0, 45.0])
def test_motion(angle: float, shape: tuple[int, int, int]) -> None:
    images, radius, sigma = photos(shape), 7, 4.0
    height, width = shape[:2]
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    taps = (weights / weights.sum()).astype(np.float32)

    def moved(k: int) -> Any:
        down, right = (
            math.ceil(k * turn(math.radians(angle)) * (1 - 1e-15) - 0.5) for turn in (math.sin, math.cos)
        )
        rows = np.clip(np.arange(height) + down, 0, height - 1)
        columns = np.clip(np.arange(width) + right, 0, width - 1)
        return images[:, rows][:, :, columns].astype(np.float32)

    total = np.full(images.shape, np.float32(1 / 514))
    for k in range(0, len(taps) - 3, 4):
        near = fused(taps[k], moved(k), taps[k + 1] * moved(k + 1))
        far = fused(taps[k + 2], moved(k + 2), taps[k + 3] * moved(k + 3))
        total = total + (near + far)
    for k in range(len(taps) // 4 * 4, len(taps)):
        total = fused(taps[k], moved(k), total)
    assert np.array_equal(OPS.motion(images, radius, sigma, np.full(2, angle)), to_bytes(total))


def mixed(values: NDArray[np.float32], x: Any, y: Any, border: str) -> Any:
    """Bilinear samples of images `(n, h, w, c)`: across first, then down."""
    left, top = np.floor(x), np.floor(y)
    s, t = ((place - whole).astype(np.float32)[..., None] for place, whole in ((x, left), (y, top)))
    which = np.arange(len(values))[:, None, None]

    def at(down: int, right: int) -> Any:
        margin = 500
        rows, columns = (border_index(size, margin, margin + 1, border) for size in values.shape[1:3])
        return values[
            which, rows[top.astype(int) + down + margin], columns[left.astype(int) + right + margin]
        ]

    upper = fused(at(0, 1) - at(0, 0), s, at(0, 0))
    lower = fused(at(1, 1) - at(1, 0), s, at(1, 0))
    return fused(lower - upper, t, upper)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("far", [0.0, 0.3, 9.0], ids=["still", "near the edges", "with gaps"])
def test_displace(far: float, shape: tuple[int, int, int]) -> None:
    images = photos(shape).astype(np.float32)
    reach = max(shape[:2])
    right, down = RNG.normal(0, far, (2, 2, *shape[:2])).clip(-reach, reach).astype(np.float32)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    wanted = mixed(images, x + right, y + down, "reflect")
    assert np.array_equal(OPS.displace(images, right, down), to_bytes(wanted))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("off", [0.0, 2.5, 40.0])
def test_affine(off: float, shape: tuple[int, int, int]) -> None:
    images, off = photos(shape), min(off, max(shape[:2]))
    turned = [[1.0, 1 / 64, off], [1 / 32, 1.0, -off]]
    maps = np.array([[[1.0, 0.0, off], [0.0, 1.0, -off]], turned])
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float64)
    places = [m[:, :1, None] * x + (m[:, 1:2, None] * y + m[:, 2:, None]) for m in maps.transpose(1, 0, 2)]
    wanted = mixed(images.astype(np.float32), places[0], places[1], "mirror")
    assert np.array_equal(OPS.affine(images, maps, border="mirror"), wanted)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("radius", "softness"), [(3, 0.1), (6, 0.5), (8, 0.5), (20, 0.9)])
def test_defocus(radius: float, softness: float, shape: tuple[int, int, int]) -> None:
    """Return sums of a flat disk, with the edge smoothed along both axes, and the boxes outside it."""
    images = photos(shape)
    pad, _, _, weight, taps, heights, boxes, weights = disk_parts(radius, softness)
    rim = len(taps) - 1
    rows, columns = (border_index(size, pad, pad, "mirror") for size in shape[:2])
    padded = images[:, rows][:, :, columns].astype(np.int64)

    def part(values: Any, down: int, right: int, margin: int) -> Any:
        """The values around the image, `margin` more on each side, moved."""
        top, left = pad - margin + down, pad - margin + right
        return values[:, top : top + shape[0] + 2 * margin, left : left + shape[1] + 2 * margin]

    whole = int(radius)
    span = range(-whole, whole + 1)
    inside = [(y, x) for y in span for x in span if y * y + x * x <= radius * radius]
    total = sum(part(padded, y, x, rim) for y, x in inside).astype(np.float32) * weight
    for axis, size in ((1, shape[0]), (2, shape[1])):
        lines = [np.moveaxis(total, axis, 0)[k : k + size] for k in range(2 * rim + 1)]
        smooth = taps[0] * lines[rim]
        for k in range(1, rim + 1):
            smooth = fused(taps[k], lines[rim - k] + lines[rim + k], smooth)
        total = np.moveaxis(smooth, 0, axis)
    for (number, right), fraction in zip(boxes, weights, strict=True):
        tall = range(-heights[number], heights[number] + 1)
        left_box, right_box = (
            sum(part(padded, y, x, 0) for y in tall).astype(np.float32) for x in (-right, right)
        )
        total = fused(fraction, left_box + right_box, total)
    assert np.array_equal(OPS.defocus(images, radius, softness), to_bytes(total))


@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("factors", [(1.0, 1.02, 1.2), (1.0, 1.0, 1.5), (1.3, 1.0), (1.0,)])
def test_zoom(factors: tuple[float, ...], shape: tuple[int, int, int]) -> None:
    images = photos(shape)
    values = images.astype(np.float32)
    total = values
    for factor in factors:
        (rows, t), (columns, s) = (zoom_positions(size, factor) for size in shape[:2])
        near, far = values[:, rows], values[:, np.minimum(rows + 1, shape[0] - 1)]
        lines = fused(far - near, t.astype(np.float32)[:, None, None], near)
        near, far = lines[:, :, columns], lines[:, :, np.minimum(columns + 1, shape[1] - 1)]
        total = total + fused(far - near, s.astype(np.float32)[:, None], near)
    fraction = np.float32(1) / np.float32(len(factors) + 1)
    assert np.array_equal(OPS.zoom_average(images, factors), to_bytes(total * fraction))


@numba.njit(fastmath=FAST)
def _flakes(
    normals: Any, mean: Any, spread: Any, threshold: Any, rows: Any, t: Any, columns: Any, s: Any, out: Any
) -> None:
    """Each flake on its own."""
    height, width = normals.shape
    for y in range(height):
        a, b = normals[rows[y]], normals[min(rows[y] + 1, height - 1)]
        for x in range(width):
            k, j = columns[x], min(columns[x] + 1, width - 1)
            left = a[k] * (1 - t[y]) + b[k] * t[y]
            right = a[j] * (1 - t[y]) + b[j] * t[y]
            value = mean + spread * (left * (1 - s[x]) + right * s[x])
            value = 0.0 if value < threshold else value
            out[y, x] = np.uint8(min(max(value, 0.0), 1.0) * 255)


@pytest.mark.parametrize("factor", [1.0, 1.75, 4.0])
def test_flakes(factor: float) -> None:
    normals = RNG.normal(size=(2, 61, 83))
    down, across = (zoom_positions(size, factor) for size in normals.shape[1:])
    made = OPS.flakes(normals, 0.5, 0.3, factor, 0.6)[..., 0]
    for field, found in zip(normals, made, strict=True):
        wanted = np.empty(field.shape, np.uint8)
        _flakes(field, 0.5, 0.3, 0.6, *down, *across, wanted)
        assert np.array_equal(found, wanted)


@numba.njit
def _lanes_of(floats: Any, doubles: Any, small: Any, out: Any) -> None:
    a, b = pointer(floats), pointer(doubles)
    total = load(a, 1) * splat(one(a, 0)) - load_floats(pointer(small), 2)
    total += load(a, 0)
    store(pointer(out[0]), 0, total)
    store(pointer(out[1]), 0, fma(load(a, 0), load(a, 1), total))
    store(b, 3, fma(load(b, 0), splat(one(b, 1)), load(b, 2)))


def test_lanes() -> None:
    floats = RNG.normal(size=LANES + 1).astype(np.float32)
    doubles = RNG.normal(size=LANES + 3)
    small = RNG.integers(0, 256, LANES + 2, np.uint8)
    out, before = np.empty((2, LANES), np.float32), doubles.copy()
    _lanes_of(floats, doubles, small, out)
    total = floats[1:] * floats[0] - small[2:] + floats[:-1]
    assert np.array_equal(out[0], total)
    assert np.array_equal(out[1], fused(floats[:-1], floats[1:], total))
    assert doubles[3:] == pytest.approx(before[:LANES] * before[1] + before[2 : LANES + 2], rel=1e-12)
    assert np.array_equal(doubles[:3], before[:3])

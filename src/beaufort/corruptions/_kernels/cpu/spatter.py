"""Drops of water and mud, with Numba."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import exact_kernel, inlined, kernel, to_byte
from beaufort.corruptions._kernels.cpu.gaussian_blur import smooth
from beaufort.corruptions._kernels.cpu.spatter_edges import REACH, depths, edges
from beaufort.corruptions._kernels.cpu.vectors import add

i16, i32, u8, u16, f32, f64 = np.int16, np.int32, np.uint8, np.uint16, np.float32, np.float64

_ONE = f32(1 << 23)
"""Depths are whole multiples of one over this: 0, or float32 numbers from 1 on. Nine of them fit 31 bits."""

_NINTH = 1 / 9 / (1 << 23)


@inlined
def _beside(at, size):
    """Return the positions before and after one, mirrored at the last, which is not repeated."""
    before = at - 1 if at > 0 else min(1, size - 1)
    return before, at + 1 if at < size - 1 else max(size - 2, 0)


@inlined
def _mirror(row, width):
    """Fill the positions before and after a row that begins at 1."""
    row[0], row[width + 1] = row[min(2, width)], row[max(width - 1, 1)]


@exact_kernel
def _whole_steps(depths, sums, out):
    """Average 3 × 3 depths, truncated; sums are exact, so their order does not matter."""
    height, width = out.shape
    for y in range(height):
        before, after = _beside(y, height)
        above, here, below = depths[before + 2, 2:], depths[y + 2, 2:], depths[after + 2, 2:]
        target = out[y]
        for x in range(width):
            sums[x + 1] = add(add(i32(above[x] * _ONE), i32(below[x] * _ONE)), i32(here[x] * _ONE))
        _mirror(sums, width)
        for x in range(width):
            target[x] = u8(i32(f32(f64(add(add(sums[x], sums[x + 1]), sums[x + 2])) * _NINTH)))


_TWO = (REACH + 1) << 8
"""Numbers that two steps side by side can make."""


@exact_kernel
def _equalize(flat, pairs, of_two, counts, levels):
    """Spread the steps over 256 levels by how many there are of each, two of them at a time.

    The counts of one and of two are zeros before.
    """
    for k in range(pairs.size):
        of_two[pairs[k]] += 1
    for low in range(REACH + 1):
        for high in range(REACH + 1):
            counts[low] += of_two[high << 8 | low]
            counts[high] += of_two[high << 8 | low]
    if flat.size % 2 == 1:
        counts[flat[-1]] += 1
    _level_table(counts, flat.size, levels)
    for low in range(REACH + 1):
        for high in range(REACH + 1):
            of_two[high << 8 | low] = i32(levels[high]) << 8 | i32(levels[low])
    for k in range(pairs.size):
        pairs[k] = u16(of_two[pairs[k]])
    if flat.size % 2 == 1:
        flat[-1] = levels[flat[-1]]


@inlined
def _level_table(counts, size, levels):
    """Return the level of each step: the number of values below, without the first."""
    first = 0
    while counts[first] == 0:
        first += 1
    if counts[first] == size:
        levels[first] = first
        return
    scale, below = f32(255) / f32(size - counts[first]), 0
    levels[first] = 0
    for step in range(first + 1, REACH + 1):
        below += counts[step]
        levels[step] = u8(np.rint(f32(below) * scale))


@exact_kernel
def _emboss(levels, rows, out):
    """Compute light from the lower right: the next row and column are added, the previous ones subtracted."""
    height, width = levels.shape
    for y in range(height):
        before, after = _beside(y, height)
        for k, source in ((0, levels[before]), (1, levels[y]), (2, levels[after])):
            row = rows[k]
            for x in range(width):
                row[x + 1] = i16(source[x])
            _mirror(row, width)
        above, here, below, target = rows[0], rows[1], rows[2], out[y]
        for x in range(width):
            light = i16(here[x + 1] + here[x + 2] + below[x + 1] + 2 * below[x + 2])
            light = i16(light - 2 * above[x] - above[x + 1] - here[x])
            target[x] = u8(min(max(light, i16(0)), i16(255)))


@exact_kernel
def _shine(water, light, strength, sums, products, out):
    """The mean of 3 × 3 values of light, rounded, times the water; the largest product becomes `strength`."""
    height, width = water.shape
    brightest = u16(0)
    for y in range(height):
        before, after = _beside(y, height)
        above, here, below = light[before], light[y], light[after]
        for x in range(width):
            sums[x + 1] = u16(u16(above[x]) + u16(here[x]) + u16(below[x]))
        _mirror(sums, width)
        source, target = water[y], products[y]
        for x in range(width):
            mean = u16(u16(sums[x] + sums[x + 1] + sums[x + 2] + u16(4)) // u16(9))
            target[x] = u16(mean * u16(source[x]))
        for x in range(width):  # in a loop of its own, so that both vectorize
            brightest = max(brightest, target[x])
    gain = strength / f32(brightest) if brightest > 0 else f32(0)
    for y in range(height):
        product, shown = products[y], out[y]
        for x in range(width):
            shown[x] = f32(product[x]) * gain


def relief(water: Bytes, depths: Array, strength: float, out: Array) -> None:
    """Return the light that each pixel of water adds, by its depth; the brightest one adds `strength`.

    Args:
        water: 8-bit values, `(h, w)`.
        depths: with the frame that `_edges_cpu.depths` gives them.
        strength: of the brightest pixel.
        out: float32, as `water`.
    """
    wide = water.shape[1] + 2
    steps, light = np.empty_like(water), np.empty_like(water)
    _whole_steps(depths, np.empty(wide, np.int32), steps)
    flat = steps.reshape(steps.size)
    pairs = flat[: flat.size // 2 * 2].view(np.uint16)
    counts, levels = np.zeros(REACH + 1, np.int64), np.empty(REACH + 1, np.uint8)
    _equalize(flat, pairs, np.zeros(_TWO, np.int32), counts, levels)
    _emboss(steps, np.empty((3, wide), np.int16), light)
    _shine(water, light, f32(strength), np.empty(wide, np.uint16), np.empty(water.shape, np.uint16), out)


@kernel
def _liquid(smoothed, mean, spread, threshold, out):
    for i in range(smoothed.size):
        value = mean + spread * smoothed[i]
        out[i] = u8(0) if value < threshold else u8(i32(value * 255))


@kernel
def _spots(smoothed, mean, spread, threshold, out):
    for i in range(smoothed.size):
        out[i] = f32(1) if mean + spread * smoothed[i] > threshold else f32(0)


@kernel
def _trim(masks, least):
    for i in range(masks.size):
        masks[i] = f32(0) if masks[i] < least else masks[i]


def mud_spots(
    normals: Array, mean: float, spread: float, sigma: float, threshold: float, rim: float
) -> Array:
    spots = np.empty(normals.shape, np.float32)
    _spots(smooth(normals, sigma).ravel(), mean, spread, threshold, spots.ravel())
    masks = smooth(spots, rim)
    _trim(masks.ravel(), f32(0.8))
    return masks


def water_drops(
    normals: Array, mean: float, spread: float, sigma: float, threshold: float, strength: float
) -> Array:
    layers = np.empty(normals.shape, np.uint8)
    _liquid(smooth(normals, sigma).ravel(), mean, spread, threshold, layers.ravel())
    out = np.empty(normals.shape, np.float32)
    height, width = normals.shape[1:]
    labels = np.empty((height + 2, (width + 9) // 8 * 8), np.uint8)
    depth = np.empty((height + 4, width + REACH), np.float32)
    for water, light in zip(layers, out, strict=True):
        edges(water, 50, 150, labels)
        depths(labels, depth)
        relief(water, depth, strength, light)
    return out


def run_down(layers: Array, weights: Mapping[int, float]) -> Array:
    below = np.zeros_like(layers)
    for rows, weight in weights.items():
        if rows >= 0:
            below[:, rows:] += weight * layers[:, : layers.shape[1] - rows]
        else:
            below[:, :rows] += weight * layers[:, -rows:]
    return below


@inlined
def _spread(mask, color, line):
    """The mask of each pixel of a row times the values of a color."""
    channels = color.size
    if channels == 3:
        red, green, blue = color[0], color[1], color[2]
        for x in range(mask.size):
            line[3 * x], line[3 * x + 1], line[3 * x + 2] = mask[x] * red, mask[x] * green, mask[x] * blue
    else:
        for x in range(mask.size):
            line[x] = mask[x] * color[0]


@kernel
def _add_paint(lines, masks, color, nearest, added, out):
    for y in range(lines.shape[0]):
        source, target = lines[y], out[y]
        _spread(masks[y], color, added)
        for x in range(source.size):
            target[x] = to_byte(f32(source[x]) + added[x], nearest)


@kernel
def _cover_with_paint(lines, masks, color, nearest, added, coverage, out):
    ones = np.ones(color.size, np.float32)
    for y in range(lines.shape[0]):
        source, target = lines[y], out[y]
        _spread(masks[y], color, added)
        _spread(masks[y], ones, coverage)
        for x in range(source.size):
            target[x] = to_byte(f32(source[x]) * (f32(1) - coverage[x]) + added[x], nearest)


def paint(
    images: Bytes, masks: Array, color: tuple[float, ...], *, cover: bool, nearest: bool = False
) -> Bytes:
    out = np.empty_like(images)
    count, height, width, channels = images.shape
    lines, over = (array.reshape(count * height, width * channels) for array in (images, out))
    mask, paints = masks.reshape(count * height, width), np.array(color, np.float32)
    added, coverage = np.empty((2, width * channels), np.float32)
    if cover:
        _cover_with_paint(lines, mask, paints, nearest, added, coverage, over)
    else:
        _add_paint(lines, mask, paints, nearest, added, over)
    return out

"""Drops of water and mud, with Numba."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import inlined, kernel, to_byte
from beaufort.corruptions._kernels.cpu.gaussian_blur import smooth
from beaufort.corruptions._kernels.cpu.spatter_edges import REACH, depths, edges
from beaufort.corruptions._kernels.cpu.spatter_relief import relief

i32, f32, u8 = np.int32, np.float32, np.uint8


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


def run_down(layers: Array, shares: Mapping[int, float]) -> Array:
    below = np.zeros_like(layers)
    for rows, share in shares.items():
        if rows >= 0:
            below[:, rows:] += share * layers[:, : layers.shape[1] - rows]
        else:
            below[:, :rows] += share * layers[:, -rows:]
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
def _cover_with_paint(lines, masks, color, nearest, added, shares, out):
    ones = np.ones(color.size, np.float32)
    for y in range(lines.shape[0]):
        source, target = lines[y], out[y]
        _spread(masks[y], color, added)
        _spread(masks[y], ones, shares)
        for x in range(source.size):
            target[x] = to_byte(f32(source[x]) * (f32(1) - shares[x]) + added[x], nearest)


def paint(
    images: Bytes, masks: Array, color: tuple[float, ...], *, cover: bool, nearest: bool = False
) -> Bytes:
    out = np.empty_like(images)
    count, height, width, channels = images.shape
    lines, over = (array.reshape(count * height, width * channels) for array in (images, out))
    mask, paints = masks.reshape(count * height, width), np.array(color, np.float32)
    added, shares = np.empty((2, width * channels), np.float32)
    if cover:
        _cover_with_paint(lines, mask, paints, nearest, added, shares, over)
    else:
        _add_paint(lines, mask, paints, nearest, added, over)
    return out

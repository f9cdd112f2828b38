"""Fractal fog and drops of water."""

from __future__ import annotations

import cv2
import numpy as np

from beaufort.arrays import Field
from beaufort.ops.cpu._kernel import fused, inlined, kernel
from beaufort.ops.cpu._plasma_rows import plasma_rows
from beaufort.ops.cpu.blur import smooth
from beaufort.rng import Undrawn

__all__ = ["mud_spots", "plasma", "water_drops"]

i32, f32, u8 = np.int32, np.float32, np.uint8


@inlined
def _refine(coarse, fine, centers, edges, lows, highs, noise, amplitude, kept):
    """One level: from cells × cells points to twice as many each way, of which `kept` rows are written.

    `lows` and `highs` follow the smallest and the largest point, column by column: a point once made
    stays in the map, so that the extremes of the whole map are known when the last one is made. Roundings
    are spelled out, and in the last square of a row another one than elsewhere, as the first version had it:
    `_plasma_rows` has to give the same bits.
    """
    cells = coarse.shape[0]
    last = cells - 1
    quarter = f32(0.25)
    for y in range(cells):
        here, below = coarse[y], coarse[(y + 1) % cells]
        center, wobble = centers[y], noise[0, y]
        for x in range(last):
            corners = (here[x] + here[x + 1]) + (below[x] + below[x + 1])
            center[x] = fused(amplitude, wobble[x], corners * quarter)
            lows[x], highs[x] = min(lows[x], center[x]), max(highs[x], center[x])
        corners = (here[last] + here[0]) + (below[last] + below[0])
        center[last] = fused(corners, quarter, amplitude * wobble[last])
        lows[last], highs[last] = min(lows[last], center[last]), max(highs[last], center[last])
    for y in range(cells):
        here, below = coarse[y], coarse[(y + 1) % cells]
        center, above = centers[y], centers[(y + last) % cells]
        wobble = noise[1, y]
        for x in range(last):
            around = (center[x] + above[x]) + (here[x] + here[x + 1])
            edges[x] = fused(amplitude, wobble[x], around * quarter)
            lows[x], highs[x] = min(lows[x], edges[x]), max(highs[x], edges[x])
        around = (center[last] + above[last]) + (here[last] + here[0])
        edges[last] = fused(amplitude, wobble[last], around * quarter)
        lows[last], highs[last] = min(lows[last], edges[last]), max(highs[last], edges[last])
        if 2 * y < kept:
            row = fine[2 * y]
            for x in range(cells):
                row[2 * x] = here[x]
                row[2 * x + 1] = edges[x]
        wobble = noise[2, y]
        around = (center[0] + center[last]) + (here[0] + below[0])
        edges[0] = fused(amplitude, wobble[0], around * quarter)
        lows[0], highs[0] = min(lows[0], edges[0]), max(highs[0], edges[0])
        for x in range(1, cells):
            around = (center[x] + center[x - 1]) + (here[x] + below[x])
            edges[x] = fused(amplitude, wobble[x], around * quarter)
            lows[x], highs[x] = min(lows[x], edges[x]), max(highs[x], edges[x])
        if 2 * y + 1 < kept:
            row = fine[2 * y + 1]
            for x in range(cells):
                row[2 * x] = edges[x]
                row[2 * x + 1] = center[x]


@kernel
def _plasma(noise, side, decay, out):
    height, width = out.shape[1:]
    one = np.empty(side * side, np.float32)
    other = np.empty(side * side, np.float32)
    centers = np.empty((side // 2, side // 2), np.float32)
    edges = np.empty(side // 2, np.float32)
    lows = np.empty(side // 2, np.float32)
    highs = np.empty(side // 2, np.float32)
    for i in range(noise.shape[0]):
        one[0] = 0
        lows[:] = 0
        highs[:] = 0
        cells = 1
        amplitude = f32(10000)
        position = 0
        while cells < side:
            size = cells * cells
            wobble = noise[i, position : position + 3 * size].reshape(3, cells, cells)
            coarse = one[:size].reshape(cells, cells)
            fine = other[: 4 * size].reshape(2 * cells, 2 * cells)
            kept = 2 * cells if 2 * cells < side else height
            _refine(coarse, fine, centers, edges, lows, highs, wobble, amplitude, kept)
            one, other = other, one
            position += 3 * size
            cells *= 2
            amplitude = f32(amplitude / (decay * decay))
        low = lows.min()
        scale = f32(1) / (highs.max() - low)
        for y in range(height):
            row, target = one[y * side : (y + 1) * side], out[i, y]
            for x in range(width):
                target[x] = (row[x] - low) * scale


def plasma(noise: Field | Undrawn, side: int, decay: float, height: int, width: int) -> Field:
    """Diamond-square fractals of `side` = 2^k, scaled to [0, 1] and cropped, float32.

    `noise` holds side² - 1 numbers of (-1, 1) an image: for each level the squares, the diamonds
    on the rows and those on the columns. The amplitude is 100² at first and falls by decay² a level.
    Numbers that are not drawn yet are drawn row by row, and memory holds no map.
    """
    if isinstance(noise, Undrawn):
        return plasma_rows(*noise, side, decay, height, width)
    out = np.empty((len(noise), height, width), np.float32)
    _plasma(noise, side, f32(decay), out)
    return out


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
    normals: Field, mean: float, spread: float, sigma: float, threshold: float, rim: float
) -> Field:
    """How much mud covers each pixel, 0 or 0.8 to 1, float32: noise above a threshold, rounded off."""
    spots = np.empty(normals.shape, np.float32)
    _spots(smooth(normals, sigma).ravel(), mean, spread, threshold, spots.ravel())
    masks = smooth(spots, rim)
    _trim(masks.ravel(), f32(0.8))
    return masks


_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])


@kernel
def _shine(water, relief, strength, out):
    brightest = i32(0)
    for i in range(water.size):
        brightest = max(brightest, i32(water[i]) * i32(relief[i]))
    gain = strength / f32(brightest) if brightest > 0 else f32(0)
    for i in range(water.size):
        out[i] = f32(i32(water[i]) * i32(relief[i])) * gain


def water_drops(
    normals: Field, mean: float, spread: float, sigma: float, threshold: float, strength: float
) -> Field:
    """How much light each pixel of water adds, float32: drops with a bright and a dark rim."""
    layers = np.empty(normals.shape, np.uint8)
    _liquid(smooth(normals, sigma).ravel(), mean, spread, threshold, layers.ravel())
    out = np.empty(normals.shape, np.float32)
    for water, light in zip(layers, out, strict=True):
        depth = cv2.distanceTransform(255 - cv2.Canny(water, 50, 150), cv2.DIST_L2, 5)
        depth = cv2.blur(np.minimum(depth, 20), (3, 3))
        relief = cv2.filter2D(cv2.equalizeHist(depth.astype(np.uint8)), cv2.CV_8U, _EMBOSS)
        _shine(water.ravel(), cv2.blur(relief, (3, 3)).ravel(), f32(strength), light.ravel())
    return out

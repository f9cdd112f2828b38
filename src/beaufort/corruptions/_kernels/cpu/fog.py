"""Fractals and haze, with Numba."""

from __future__ import annotations

import numpy as np

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import fused, inlined, kernel, to_byte
from beaufort.corruptions._kernels.cpu.plasma_rows import plasma_rows
from beaufort.corruptions.rng import FieldKey

f32, u8 = np.float32, np.uint8


@inlined
def _refine(coarse, fine, centers, edges, lows, highs, noise, amplitude, kept):
    """Refine one level: from cells × cells points to twice as many per axis; `kept` rows are written.

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
        low, high = lows[0], highs[0]
        for x in range(1, side // 2):  # not NumPy's `min`: loading a kernel with it imports much of SciPy
            low, high = min(low, lows[x]), max(high, highs[x])
        scale = f32(1) / (high - low)
        for y in range(height):
            row, target = one[y * side : (y + 1) * side], out[i, y]
            for x in range(width):
                target[x] = (row[x] - low) * scale


def plasma(noise: Array | FieldKey, side: int, decay: float, height: int, width: int) -> Array:
    if isinstance(noise, FieldKey):
        return plasma_rows(noise, side, decay, height, width)
    out = np.empty((len(noise), height, width), np.float32)
    _plasma(noise, side, f32(decay), out)
    return out


@kernel
def _haze(images, fields, amount, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    thick = np.empty(line, np.float32)
    for i in range(images.shape[0]):
        sources, targets = images[i].reshape(height, line), out[i].reshape(height, line)
        brightest = u8(0)
        flat = images[i].reshape(height * line)
        for x in range(flat.size):
            brightest = max(brightest, flat[x])
        top = f32(brightest) / f32(255)
        gain = top / (top + amount)
        veil = gain * amount * f32(255)
        for y in range(height):
            field = fields[i, y]
            if channels == 3:
                for x in range(width):
                    thick[3 * x] = field[x] * veil
                    thick[3 * x + 1] = field[x] * veil
                    thick[3 * x + 2] = field[x] * veil
            else:
                for x in range(width):
                    thick[x] = field[x] * veil
            source, target = sources[y], targets[y]
            for x in range(line):
                target[x] = to_byte(f32(source[x]) * gain + thick[x], nearest)


def haze(images: Bytes, fields: Array, amount: float, *, nearest: bool = False) -> Bytes:
    out = np.empty_like(images)
    _haze(images, fields, f32(amount), nearest, out)
    return out

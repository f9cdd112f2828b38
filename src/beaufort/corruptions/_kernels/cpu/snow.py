"""Flakes and snowfall, with Numba."""

from __future__ import annotations

import numpy as np

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import inlined, kernel, put_together, take_apart, to_byte
from beaufort.corruptions._kernels.cpu.zoom_blur import zoom_positions
from beaufort.corruptions._kernels.operations import Ends

i32, f32, u8, uintp = np.int32, np.float32, np.uint8, np.uintp


@kernel
def _flakes(normals, mean, spread, threshold, rows, row_weight, columns, column_weight, out):
    height, width = normals.shape[1:]
    first, last = columns[0], min(columns[-1] + 1, width - 1)
    line = np.empty(width, np.float64)
    for i in range(normals.shape[0]):
        for y in range(height):
            a, b, t = normals[i, rows[y]], normals[i, min(rows[y] + 1, height - 1)], row_weight[y]
            for x in range(first, last + 1):
                line[x] = a[x] * (1 - t) + b[x] * t
            target = out[i, y]
            for x in range(width):  # an unsigned index needs no check of its sign, so the loop vectorizes
                left, right, s = (
                    line[uintp(columns[x])],
                    line[uintp(min(columns[x] + 1, last))],
                    column_weight[x],
                )
                value = mean + spread * (left * (1 - s) + right * s)
                value = 0.0 if value < threshold else value
                target[x, 0] = u8(i32(min(max(value, 0.0), 1.0) * 255))


def flakes(
    normals: Array, mean: float, spread: float, factor: float, threshold: float, *, like: Ends | None = None
) -> Bytes:
    down, across = (zoom_positions(size, factor, like) for size in normals.shape[1:])
    out = np.empty((*normals.shape, 1), np.uint8)
    _flakes(normals, mean, spread, threshold, *down, *across, out)
    return out


@inlined
def _whiten(values, white, flakes, mix, nearest):
    """Mix a row of one color with its whitened version, and add the flakes."""
    rest = f32(1) - mix
    for x in range(values.size):
        value = f32(values[x])
        values[x] = to_byte(mix * value + rest * max(value, white[x]) + flakes[x], nearest)


@kernel
def _snowfall(images, layers, mix, nearest, out):
    height, width, channels = images.shape[1:]
    reds, greens, blues = np.empty((3, width), np.uint8)
    white, flakes = np.empty(width, np.float32), np.empty(width, np.float32)
    line = width * channels
    for i in range(images.shape[0]):
        sources, targets = images[i].reshape(height, line), out[i].reshape(height, line)
        for y in range(height):
            source, target = sources[y], targets[y]
            layer, turned = layers[i, y], layers[i, height - 1 - y]
            for x in range(width):  # an unsigned index needs no check of its sign, so the loop vectorizes
                flakes[x] = f32(i32(layer[x]) + i32(turned[uintp(width - 1 - x)]))
            if channels == 3:
                take_apart(source, reds, greens, blues)
                for x in range(width):
                    red, green, blue = f32(reds[x]), f32(greens[x]), f32(blues[x])
                    gray = f32(0.299) * red + f32(0.587) * green + f32(0.114) * blue
                    white[x] = f32(1.5) * gray + f32(127.5)
                _whiten(reds, white, flakes, mix, nearest)
                _whiten(greens, white, flakes, mix, nearest)
                _whiten(blues, white, flakes, mix, nearest)
                put_together(reds, greens, blues, target)
            else:
                for x in range(width):
                    target[x] = source[x]
                    white[x] = f32(1.5) * f32(source[x]) + f32(127.5)
                _whiten(target, white, flakes, mix, nearest)


def snowfall(images: Bytes, layers: Bytes, mix: float, *, nearest: bool = False) -> Bytes:
    out = np.empty_like(images)
    _snowfall(images, layers, f32(mix), nearest, out)
    return out

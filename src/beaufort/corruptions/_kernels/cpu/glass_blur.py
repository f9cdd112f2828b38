"""Sweeps in which pixels take the place of others, with Numba."""

from __future__ import annotations

import numpy as np

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import copy_values, inlined, kernel
from beaufort.corruptions._kernels.cpu.vectors import add, mul, shl, shr, sub

i32, u32, u8 = np.int32, np.uint32, np.uint8


@inlined
def _look_around(pairs, bits, start, width, places, rights):
    """Return the source of each visit of a row, with all bits set where it was written in the same row.

    These take from their right, and their source is then their own position.
    """
    bits, rest, most, last, line = i32(bits), i32(32 - bits), i32(1 << (bits - 1)), i32(start), i32(width)
    for c in range(places.size):
        pair = i32(pairs[c])
        away = add(mul(shr(pair, bits), line), shr(shl(pair, rest), rest))
        right = (pair > i32(0)) & (pair < most) & (pair <= i32(c))
        places[c] = u32(add(sub(last, i32(c)), i32(0) if right else away))
        rights[c] = u32(0xFFFFFFFF) if right else u32(0)


@inlined
def _copy_row(packed, start, pairs, distance, places, rights):
    """Visit a row of pixels from the last, `start`, to the first.

    A processor that reads what it has just written has to wait, and soon waits before every such read. So the
    value before is kept at hand, which is all that can be to the right at a distance of 2, and farther ones
    are read on a way of their own.
    """
    value = u32(0)
    if distance <= 2:
        for c in range(places.size):
            kept = rights[c]
            value = u32((value & kept) | (packed[places[c]] & ~kept))
            packed[start - c] = value
    else:
        for c in range(places.size):
            value = packed[places[c]] if rights[c] == 0 else packed[start - c + pairs[c]]
            packed[start - c] = value


@kernel
def _copy_sweeps(images, pairs, bits, distance, out):
    height, width, channels = images.shape[1:]
    packed = np.empty(height * width, np.uint32)
    places, rights = np.empty((2, pairs.shape[3]), np.uint32)
    for i in range(images.shape[0]):
        source, target = images[i].reshape(packed.size * channels), out[i].reshape(packed.size * channels)
        if channels == 3:
            for x in range(packed.size):
                red, green, blue = u32(source[3 * x]), u32(source[3 * x + 1]), u32(source[3 * x + 2])
                packed[x] = red | green << u32(8) | blue << u32(16)
        else:
            for x in range(packed.size):
                packed[x] = u32(source[x])
        for sweep in range(pairs.shape[1]):
            for r in range(pairs.shape[2]):
                start, row = (height - distance - r) * width + width - distance, pairs[i, sweep, r]
                _look_around(row, bits, start, width, places, rights)
                _copy_row(packed, start, row, distance, places, rights)
        if channels == 3:
            for x in range(packed.size):
                color = packed[x]
                target[3 * x], target[3 * x + 1] = u8(color), u8(color >> u32(8))
                target[3 * x + 2] = u8(color >> u32(16))
        else:
            for x in range(packed.size):
                target[x] = u8(packed[x])


def copy_sweeps(images: Bytes, offsets: Array, distance: int) -> Bytes:
    out = np.empty_like(images)
    bits = 8 * offsets.itemsize
    pairs = np.ascontiguousarray(offsets).view(np.int16 if bits == 8 else np.int32)[
        ..., 0
    ]  # the row offset in the upper bits
    _copy_sweeps(images, pairs, bits, distance, out)
    return out


@kernel
def _swap_sweeps(images, gates, offsets, distance, out):
    height, width = images.shape[1:3]
    for i in range(images.shape[0]):
        copy_values(images[i].reshape(images[i].size), out[i].reshape(images[i].size))
        for c in range(images.shape[3]):
            for sweep in range(gates.shape[1]):
                for r in range(gates.shape[2]):
                    y = height - distance - r
                    for k in range(gates.shape[3]):
                        if gates[i, sweep, r, k]:
                            x = width - distance - k
                            other_x = x + offsets[i, sweep, r, k, 0]
                            other_y = y + offsets[i, sweep, r, k, 1]
                            value = out[i, y, x, c]
                            out[i, y, x, c] = out[i, other_y, other_x, c]
                            out[i, other_y, other_x, c] = value


def swap_sweeps(images: Bytes, gates: Array, offsets: Array, distance: int) -> Bytes:
    out = np.empty_like(images)
    _swap_sweeps(images, gates, offsets, distance, out)
    return out

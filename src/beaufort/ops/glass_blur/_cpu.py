"""Sweeps in which pixels take the place of others, with Numba."""

from __future__ import annotations

import numpy as np

from beaufort.arrays import Array, Bytes
from beaufort.ops._numba import kernel

__all__ = ["copy_sweeps", "swap_sweeps"]

u32, i64, u8 = np.uint32, np.int64, np.uint8


@kernel
def _copy_sweeps(images, offsets, distance, out):
    height, width, channels = images.shape[1:]
    packed = np.empty(height * width, np.uint32)
    for i in range(images.shape[0]):
        source = images[i].reshape(height * width, channels)
        target = out[i].reshape(height * width, channels)
        if channels == 3:
            for x in range(packed.size):
                packed[x] = u32(source[x, 0]) | u32(source[x, 1]) << u32(8) | u32(source[x, 2]) << u32(16)
        else:
            for x in range(packed.size):
                packed[x] = u32(source[x, 0])
        for sweep in range(offsets.shape[1]):
            for r in range(offsets.shape[2]):
                row = offsets[i, sweep, r]
                start = (height - distance - r) * width + width - distance
                for c in range(row.shape[0]):
                    at = start - c
                    packed[at] = packed[at + i64(row[c, 1]) * width + i64(row[c, 0])]
        if channels == 3:
            for x in range(packed.size):
                target[x, 0] = u8(packed[x])
                target[x, 1] = u8(packed[x] >> u32(8))
                target[x, 2] = u8(packed[x] >> u32(16))
        else:
            for x in range(packed.size):
                target[x, 0] = u8(packed[x])


def copy_sweeps(images: Bytes, offsets: Array, distance: int) -> Bytes:
    """Sweep over the pixels from the last to the first, each taking the value of one near it.

    `offsets` is `(n, sweeps, h - 2d, w - 2d, 2)`: column and row offset in the order of the visits.
    """
    out = np.empty_like(images)
    _copy_sweeps(images, offsets, distance, out)
    return out


@kernel
def _swap_sweeps(images, gates, offsets, distance, out):
    height, width = images.shape[1:3]
    for i in range(images.shape[0]):
        out[i] = images[i]
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
    """As `copy_sweeps`, but a true swap, and only where the gate is open."""
    out = np.empty_like(images)
    _swap_sweeps(images, gates, offsets, distance, out)
    return out

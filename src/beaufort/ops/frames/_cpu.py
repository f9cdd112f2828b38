"""Frames of a film, with Numba."""

from __future__ import annotations

import math

import numpy as np

from beaufort.arrays import Array, Bytes
from beaufort.ops._numba import exact_kernel

__all__ = ["affine_frame"]


@exact_kernel
def _affine_frame(images, a, b, c, d, about_x, about_y, top, left, out):
    height, width, channels = images.shape[1:]
    for y in range(out.shape[1]):
        for x in range(out.shape[2]):
            right, down = x + left + 0.5 - about_x, y + top + 0.5 - about_y
            u, v = a * right + b * down + about_x, c * right + d * down + about_y
            if u < 0 or u >= width or v < 0 or v >= height:
                out[:, y, x] = 0
                continue
            u, v = min(max(u - 0.5, 0.0), width - 1.0), min(max(v - 0.5, 0.0), height - 1.0)
            column, row = math.floor(u), math.floor(v)
            next_column, next_row = min(column + 1, width - 1), min(row + 1, height - 1)
            s, t = u - column, v - row
            for i in range(images.shape[0]):
                for k in range(channels):
                    p, q = float(images[i, row, column, k]), float(images[i, row, next_column, k])
                    upper = p + (q - p) * s
                    p, q = float(images[i, next_row, column, k]), float(images[i, next_row, next_column, k])
                    lower = p + (q - p) * s
                    out[i, y, x, k] = np.uint8(upper + (lower - upper) * t)


def affine_frame(images: Bytes, matrix: Array, about: tuple[float, float], side: int) -> Bytes:
    """The middle of a picture under (x, y) ← matrix · (x, y) about a point, cut off to 8 bit.

    Linear between pixels. A position outside the picture is black; its edge is not blended.
    """
    top, left = (round((length - side) / 2) for length in images.shape[1:3])
    out = np.empty((len(images), side, side, images.shape[3]), np.uint8)
    _affine_frame(images, *map(float, matrix.ravel()), *about, top, left, out)
    return out

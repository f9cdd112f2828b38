"""Images mixed with textures, with Numba."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.compiled import exact_kernel

i32 = np.int32


@exact_kernel
def _blend(image, texture, row, column, weight, texture_weight, nearest, out):
    height, line = image.shape[0], image.shape[1] * image.shape[2]
    sources, targets = image.reshape(height, line), out.reshape(height, line)
    values = texture.reshape(texture.size)
    for y in range(height):
        begin = ((row + y) * texture.shape[1] + column) * image.shape[2]
        source, over, target = sources[y], values[begin : begin + line], targets[y]
        for x in range(line):
            value = weight * source[x] + texture_weight * over[x]
            whole = i32(np.rint(value) if nearest else value)
            target[x] = np.uint8(min(max(whole, i32(0)), i32(255)))  # faster than to clip the value


def blend(
    images: Bytes,
    textures: Sequence[Bytes],
    crops: NDArray[np.int64],
    weight: float,
    texture_weight: float,
    *,
    nearest: bool = False,
) -> Bytes:
    """a·X + b·F; F is cut from a texture `(h, w, c)`: its number, first row and column for each image.

    In double precision, because the weights are tenths: many sums are whole numbers but for rounding.
    """
    out = np.empty_like(images)
    whole = [np.ascontiguousarray(texture) for texture in textures]
    for image, (number, row, column), target in zip(images, crops.tolist(), out, strict=True):
        _blend(image, whole[number], row, column, float(weight), float(texture_weight), nearest, target)
    return out

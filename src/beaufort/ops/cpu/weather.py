"""Fractal fog and drops of water."""

from __future__ import annotations

import cv2
import numpy as np

from beaufort.arrays import Bytes, Field
from beaufort.ops.cpu._kernel import kernel

__all__ = ["plasma", "water_drops"]

f32 = np.float32


@kernel
def _plasma(noise, side, decay, out):  # type: ignore[no-untyped-def]
    coarse = np.empty((side, side), np.float32)
    fine = np.empty((side, side), np.float32)
    centers = np.empty((side // 2, side // 2), np.float32)
    quarter = f32(0.25)
    for i in range(noise.shape[0]):
        coarse[0, 0] = 0
        cells = 1
        amplitude = f32(10000)
        position = 0
        while cells < side:
            squares = noise[i, position : position + cells * cells]
            rows = noise[i, position + cells * cells : position + 2 * cells * cells]
            columns = noise[i, position + 2 * cells * cells : position + 3 * cells * cells]
            position += 3 * cells * cells
            last = cells - 1
            for y in range(cells):
                here, below = coarse[y], coarse[(y + 1) % cells]
                target, wobble = centers[y], squares[y * cells : (y + 1) * cells]
                for x in range(last):
                    corners = (here[x] + here[x + 1]) + (below[x] + below[x + 1])
                    target[x] = corners * quarter + amplitude * wobble[x]
                corners = (here[last] + here[0]) + (below[last] + below[0])
                target[last] = corners * quarter + amplitude * wobble[last]
            for y in range(cells):
                here, below = coarse[y], coarse[(y + 1) % cells]
                center, above = centers[y], centers[(y + cells - 1) % cells]
                even, odd = fine[2 * y], fine[2 * y + 1]
                row_wobble = rows[y * cells : (y + 1) * cells]
                column_wobble = columns[y * cells : (y + 1) * cells]
                for x in range(last):
                    even[2 * x] = here[x]
                    even[2 * x + 1] = (
                        (center[x] + above[x]) + (here[x] + here[x + 1])
                    ) * quarter + amplitude * row_wobble[x]
                even[2 * last] = here[last]
                even[2 * last + 1] = (
                    (center[last] + above[last]) + (here[last] + here[0])
                ) * quarter + amplitude * row_wobble[last]
                odd[0] = (
                    (center[0] + center[last]) + (here[0] + below[0])
                ) * quarter + amplitude * column_wobble[0]
                odd[1] = center[0]
                for x in range(1, cells):
                    odd[2 * x] = (
                        (center[x] + center[x - 1]) + (here[x] + below[x])
                    ) * quarter + amplitude * column_wobble[x]
                    odd[2 * x + 1] = center[x]
            coarse, fine = fine, coarse
            cells *= 2
            amplitude = f32(amplitude / (decay * decay))
        low, high = coarse[0, 0], coarse[0, 0]
        for y in range(side):
            line = coarse[y]
            for x in range(side):
                low = min(low, line[x])
                high = max(high, line[x])
        scale = f32(1) / (high - low)
        for y in range(out.shape[1]):
            line = coarse[y]
            target = out[i, y]
            for x in range(out.shape[2]):
                target[x] = (line[x] - low) * scale


def plasma(noise: Field, side: int, decay: float, height: int, width: int) -> Field:
    """Diamond-square fractals of `side` = 2^k, scaled to [0, 1] and cropped, float32.

    `noise` holds side² - 1 numbers of (-1, 1) an image: for each level the squares, the diamonds
    on the rows and those on the columns. The amplitude is 100² at first and falls by decay² a level.
    """
    out = np.empty((len(noise), height, width), np.float32)
    _plasma(noise, side, f32(decay), out)
    return out


_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])


def water_drops(layers: Field, strength: float) -> Field:
    """How much light each pixel of water adds (float32): drops with a bright and a dark rim."""
    return np.stack([_drops(layer, strength) for layer in layers])


def _drops(layer: Field, strength: float) -> Field:
    water = (layer * 255).astype(np.uint8)
    edges = cv2.Canny(water, 50, 150)
    depth = np.minimum(cv2.distanceTransform(255 - edges, cv2.DIST_L2, 5), 20)
    relief = cv2.equalizeHist(cv2.blur(depth, (3, 3)).astype(np.uint8))
    relief = cv2.blur(cv2.filter2D(relief, cv2.CV_8U, _EMBOSS), (3, 3))
    light = water.astype(np.float32) * relief
    brightest = light.max()
    return light * f32(strength / brightest) if brightest > 0 else light

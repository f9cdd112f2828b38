"""Transverse chromatic abberation: colors enlarged by different factors, as by a poor lens."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption
from beaufort.corruptions.rng import draw_permutations


class Params(NamedTuple):
    """Distance of the colors."""

    magnitude: float
    """Enlargement of one color in units of 2.5 percent, of another in units of 5 percent."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw the assignment of three factors to colors, `(n, 3)`."""
    return draw_permutations(random.host, 3)


@corruption("unseen", draw=draw, levels={"cifar": [Params(m) for m in (1, 2, 5, 9, 10)]})
def transverse_chromatic_abberation(images: Images, p: Params, order: Array, ops: Ops) -> Images:
    """Enlarge each color about the center by its own factor; all colors are blurred.

    Pixels are used as coefficients of a cubic spline, which smooths; results are rounded half up.
    """
    values, out = ops.real(images), ops.real(images)
    for step in range(3):
        zoomed = _zoomed(values, 1 + 0.025 * p.magnitude * step, images, ops)
        chosen = ops.lift((order == step)[:, None, None, : images.shape[3]], images)
        out = ops.where(chosen, zoomed, out)
    return ops.to_bytes(ops.floor(out + 0.5))


def _zoomed(values: Any, factor: float, images: Images, ops: Ops) -> Any:
    """Return the center of the enlarged image."""
    for axis in (1, 2):
        total: Any = 0.0
        for places, weights in zip(*_taps(values.shape[axis], factor), strict=True):
            at, weight = ops.lift(places, images), ops.lift(weights, images)
            picked = values[:, at] if axis == 1 else values[:, :, at]
            total = total + picked * (weight[:, None, None] if axis == 1 else weight[:, None])
        values = total
    return values


def _taps(side: int, factor: float) -> tuple[Array, Array]:
    """Return the four source pixels of each pixel, mirrored at the borders, and their weights."""
    large = round(side * factor)
    at = (np.arange(side) + (large - side) // 2) * ((side - 1) / (large - 1))
    first = np.floor(at).astype(np.int64)
    t = at - first
    s = 1 - t
    weights = np.stack([s**3, 4 - 6 * t**2 + 3 * t**3, 4 - 6 * s**2 + 3 * s**3, t**3]) / 6
    places = np.abs(first + np.arange(-1, 3)[:, None])
    return np.where(places >= side, 2 * side - 2 - places, places), weights

"""Perlin noise: bright clouds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption

_SIZE = 256
"""Number of table entries before the noise repeats."""

_CELLS = 7
"""Number of cells of the coarsest noise on the short side."""


class Params(NamedTuple):
    """Density of the clouds."""

    magnitude: float
    """Opacity in units of 5 percent."""


class Table(NamedTuple):
    """Tables of the noise of each image."""

    order: Array
    """A permutation of the integers below 256, `(n, 256)`."""
    slopes: Array
    """Unit vectors, `(n, 256, 2)`."""


def draw(random: Random, images: Images, p: Params) -> Table:
    """Draw 256 directions and a permutation. (Another 258 directions are drawn but not used.)"""
    host = random.reseeded().host
    words = host.integers((2 * _SIZE + 2, 2), 0, 1 << 31)[:, :_SIZE]
    slopes = (words % 512 - 256) / 256
    slopes /= np.maximum(np.linalg.norm(slopes, axis=-1, keepdims=True), 1e-9)
    others = host.integers((_SIZE,), 0, 1 << 31) % _SIZE
    image = np.arange(len(others))
    order = np.tile(np.arange(_SIZE), (len(others), 1))
    for last in range(_SIZE - 1, -1, -1):
        other = others[:, _SIZE - 1 - last]
        order[image, last], order[image, other] = order[image, other], order[image, last].copy()
    return Table(order, slopes)


def _noise(x: Any, y: Any, order: Any, slopes: Any, image: Any, ops: Ops) -> Any:
    """Return Perlin noise at real positions, `(1, h, 1)` and `(1, 1, w)`."""
    left, top = ops.floor(x), ops.floor(y)
    across, down = x - left, y - top
    corners = []
    for j in (0, 1):
        for i in (0, 1):
            number = order[image, (order[image, ops.whole(left + i) % _SIZE] + ops.whole(top + j)) % _SIZE]
            slope = slopes[image, number]
            corners.append(slope[..., 0] * (across - i) + slope[..., 1] * (down - j))
    s, t = (part**2 * (3 - 2 * part) for part in (across, down))
    upper, lower = corners[0] + s * (corners[1] - corners[0]), corners[2] + s * (corners[3] - corners[2])
    return 1.5 * (upper + t * (lower - upper))


@corruption("unseen", draw=draw, levels={"imagenet": [Params(m) for m in (4.6, 5.2, 5.8, 7.6, 8.8)]})
def perlin_noise(images: Images, p: Params, drawn: Table, ops: Ops) -> Images:
    """Cover the image with turbulence, which is nowhere darker than middle gray."""
    order, slopes = (ops.lift(one, images) for one in drawn)
    image = ops.lift(np.arange(len(drawn.order))[:, None, None], images)
    rows, columns = ops.grid(images)
    scale = _CELLS / min(images.shape[1:3])
    turbulence: Any = 0.0
    for octave in range(5):
        factor = scale * 2**octave
        turbulence += abs(_noise(rows * factor, columns * factor, order, slopes, image, ops)) / 2**octave
    cover = 0.05 * p.magnitude
    clouds = ops.clip(0.5 * turbulence + 0.5, 0, 1)
    return ops.to_bytes((1 - cover) * ops.real(images) + 255 * cover * clouds[..., None])

"""Pinch and twirl: nine round parts of the image, each rotated and pinched."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption
from beaufort.corruptions._geometry import sample

_CELLS = 3
"""Number of parts per side."""


class Params(NamedTuple):
    """Strength of both."""

    magnitude: float
    """Rotation of the center in units of 9 degrees; the exponent of the pinch is 0.04 × this + 0.1."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw the direction of each part, 1 or -1, column by column, `(n, 3, 3)`."""
    return 1 - 2 * random.host.integers((_CELLS, _CELLS), 0, 2)


@corruption("unseen", moves=True, draw=draw, levels={"cifar": [Params(m) for m in (5.5, 6, 6.5, 8.5, 10)]})
def pinch_and_twirl(images: Images, p: Params, signs: Array, ops: Ops) -> Images:
    """Distort one part after the other; rows and columns outside of the 3×3 parts stay unchanged."""
    tall, wide = images.shape[1] // _CELLS, images.shape[2] // _CELLS
    out = ops.real(images, np.float32)
    for i in range(_CELLS):
        for j in range(_CELLS):
            part = np.s_[:, j * tall : (j + 1) * tall, i * wide : (i + 1) * wide]
            angle = signs[:, i, j] * 0.05 * math.pi * p.magnitude
            rows, columns = _places(angle, tall, wide, 0.04 * p.magnitude + 0.1)
            places = ops.lift(rows + j * tall, images), ops.lift(columns + i * wide, images)
            out[part] = ops.real(sample(ops.real(out), *places, ops), np.float32)
    return ops.to_bytes(out)


def _places(angle: Array, tall: int, wide: int, exponent: float) -> tuple[Array, Array]:
    """Return the source rows and columns of each pixel of a part, each `(n, tall, wide)`.

    Positions are in units of the half axes of the inscribed ellipse.
    """
    r, c = np.mgrid[:tall, :wide]
    down, across = (r - tall / 2) / (tall / 2), (c - wide / 2) / (wide / 2)
    far = np.hypot(down, across)
    inside = (far <= 1) & (far * min(tall, wide) / 2 >= 0.0005)
    near = np.where(inside, far, 1.0)
    pinch = np.sin(np.pi / 2 * near) ** -exponent
    turn = angle[:, None, None] * (1 - near) ** 2
    cosine, sine = np.cos(turn), np.sin(turn)
    rows = tall / 2 + tall / 2 * pinch * (down * cosine - across * sine)
    columns = wide / 2 + wide / 2 * pinch * (down * sine + across * cosine)
    return np.where(inside, rows, r), np.where(inside, columns, c)

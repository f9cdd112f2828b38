"""Checkerboard cutout: gray fields of a tilted checkerboard."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption

_MOST = 40
"""Number of rows of the largest board."""


class Params(NamedTuple):
    """Covered area."""

    magnitude: float
    """Ten times the fraction of the black fields that turn gray."""


class Board(NamedTuple):
    """Board of each image."""

    angle: Array
    size: Array
    """Side of a field, in pixels."""
    rows: Array
    """Number of rows, which is also the number of columns."""
    fields: Array
    """A number from 0 to 1 per field, row by row, `(n, 1600)`; smaller boards use the first ones."""


def draw(random: Random, images: Images, p: Params) -> Board:
    """Draw the position of the board and the gray fields."""
    side, host = min(images.shape[1:3]), random.host
    angle = host.uniform((), 0, 2 * np.pi, np.float64)
    size = np.maximum(1, host.uniform((), 0.1, 0.25, np.float64) * side)
    rows = np.floor(4 * side / size).astype(np.int64)
    return Board(angle, size, rows, host.reseeded().uniform((_MOST**2,), 0, 1, np.float64))


@corruption(
    "unseen",
    draw=draw,
    levels={
        "imagenet": [Params(m) for m in (2, 3, 4, 5, 6)],
        "cifar": [Params(m) for m in (1, 2, 3, 4, 5)],
    },
)
def checkerboard_cutout(images: Images, p: Params, drawn: Board, ops: Ops) -> Images:
    """Paint random fields of one color of the board gray.

    Coordinates are truncated to fields, so the rows on both sides of zero are one row.
    """
    cosine, sine, size, board = (
        ops.lift(one[:, None, None], images)
        for one in (np.cos(drawn.angle), np.sin(drawn.angle), drawn.size, drawn.rows)
    )
    image = ops.lift(np.arange(len(drawn.angle))[:, None, None], images)
    rows, columns = ops.grid(images)
    u, v = (rows * cosine + columns * sine) / size, (columns * cosine - rows * sine) / size
    field = (ops.whole(u) % board) * board + ops.whole(v) % board
    gray = ops.lift(drawn.fields, images)[image, field] < 0.1 * p.magnitude
    gray = gray & (ops.floor(u % 2) == ops.floor(v % 2))
    out: Images = ops.where(gray[..., None], ops.lift(np.array(128, np.uint8), images), images)
    return out

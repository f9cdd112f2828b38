"""Geometry for several corruptions: maps about the center, bilinear samples, strokes and stars."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random
from beaufort.corruptions.rng import HostRandom

_MAX_RAYS = 199
"""Maximum number of rays of a star."""


def signs(random: Random, count: int) -> Array:
    """Draw -1 or 1 with equal probability, `(n, count)`."""
    return random.host.integers((count,), 0, 2) * 2 - 1


def about_center(images: Images, matrices: Array, ops: Ops) -> Images:
    """Sample each image at matrix · (x, y) about its center, black outside, rounded."""
    height, width = images.shape[1:3]
    middle = np.array([(width - 1) / 2, (height - 1) / 2])
    full = np.empty((len(images), 2, 3))
    full[:, :, :2] = matrices
    full[:, :, 2] = middle - full[:, :, :2] @ middle
    return ops.to_bytes(ops.affine(images, full, border="zero"), nearest=True)


def sample(values: Any, rows: Any, columns: Any, ops: Ops) -> Any:
    """Return the values `(n, h, w, c)` at real positions by bilinear interpolation; values outside are 0."""
    top, left = ops.floor(rows), ops.floor(columns)
    down, across = (rows - top)[..., None], (columns - left)[..., None]
    upper, lower = (
        _mixed(_at(values, row, left, ops), _at(values, row, left + 1, ops), across) for row in (top, top + 1)
    )
    return _mixed(upper, lower, down)


def _mixed(first: Any, second: Any, weight: Any) -> Any:
    return (1 - weight) * first + weight * second


def _at(values: Any, rows: Any, columns: Any, ops: Ops) -> Any:
    height, width = values.shape[1:3]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    r, c = ops.whole(ops.clip(rows, 0, height - 1)), ops.whole(ops.clip(columns, 0, width - 1))
    return values[_image_indices(values, rows.ndim, ops), r, c] * inside[..., None]


def _image_indices(values: Any, dimensions: int, ops: Ops) -> Any:
    """Return the index of each image, broadcastable to positions."""
    return ops.lift(np.arange(len(values)).reshape(-1, *[1] * (dimensions - 1)), values)


def draw_strokes(
    images: Images, segments: Array, counts: Array, unit: float, ops: Ops, *, dash: float = 0.0
) -> Images:
    """Draw segments (x0, y0, x1, y1), given for 28×28, in white on an image of any size."""
    height, width = images.shape[1:3]
    fit = np.array([width, height, width, height]) / 28
    return ops.strokes(images, segments * fit, counts, unit=unit, dash=dash * unit)


class Star(NamedTuple):
    """One star per image."""

    center: Array
    """Row and column in pixels, `(n, 2)`."""
    counts: Array
    """Number of rays, `(n,)`."""
    lengths: Array
    """Lengths of the rays in pixels, `(n, 199)`; the first `counts` are used."""


def draw_stars(random: HostRandom, centers: Array, length: float) -> list[Star]:
    """Draw a star at each center, `(n, stars, 2)`, whose rays are about `length` long.

    The lengths of all stars are one sequence. It is drawn for the maximum number of rays, so that the numbers
    of an image do not depend on the batch.
    """
    bulk = random.reseeded()
    stars = centers.shape[1]
    counts = random.integers((stars,), 50, 200).astype(np.int64)
    normal = bulk.normal((stars * _MAX_RAYS,), np.float64)
    first = np.cumsum(counts, axis=1) - counts
    found = []
    for k in range(stars):
        own = np.take_along_axis(normal, first[:, k, None] + np.arange(_MAX_RAYS), axis=1)
        found.append(Star(centers[:, k], counts[:, k], length + 0.25 * length * own))
    return found


def glow(images: Images, star: Star, exponent: float, ops: Ops) -> Any:
    """Return the brightness of the star at each pixel, from 0 to 1, `(n, h, w)`."""
    rows, columns = ops.grid(images)
    row, column = (ops.lift(star.center[:, k, None, None], images) for k in (0, 1))
    counts = ops.lift(star.counts[:, None, None], images)
    down, across = rows - row, columns - column
    turn = (ops.arctan2(across, down) + np.pi) / (2 * np.pi) * counts
    before = ops.floor(turn)
    part = turn - before
    lengths = ops.lift(star.lengths, images)
    image = ops.lift(np.arange(len(star.counts))[:, None, None], images)
    ray = ops.whole(before)
    first, second = lengths[image, ray % counts], lengths[image, (ray + 1) % counts]
    length = first + part * (second - first)
    reach = length**2 / (down**2 + across**2 + 1e-4)
    reach = reach if exponent == 1 else ops.power(reach, exponent)
    return ops.clip((1 - (part - 0.5) ** 2) * reach, 0, 1)

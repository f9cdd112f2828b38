"""Elastic transform: the image on a stretched rubber sheet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Area, Array, Field, Images, Ops, Pixels, Random, corruption


class Params(NamedTuple):
    """Strength of the deformation."""

    alpha: Area
    """Factor of the displacement field."""
    sigma: Pixels
    """Standard deviation of the Gaussian that smooths the field."""
    move: Pixels
    """Maximum displacement of each coordinate of the three points of the affine map."""


class Deformation(NamedTuple):
    """Displacements of three points as (x, y), and two fields in (-1, 1)."""

    moves: Array
    right: Field
    down: Field


def draw(random: Random, images: Images, p: Params) -> Deformation:
    """Draw three points for the affine map, and two fields for local displacements."""
    size = images.shape[1:3]
    return Deformation(
        random.host.uniform((3, 2), -p.move, p.move, np.float64),
        random.uniform(size, -1, 1),
        random.uniform(size, -1, 1),
    )


def _inverse(images: Images, moves: Array) -> Array:
    """Return the maps from pixels of the result to positions in the image, `(n, 2, 3)`.

    They map three displaced points back to their positions, a third of the short side from the center.
    """
    height, width = images.shape[1:3]
    x, y, third = width // 2, height // 2, min(height, width) // 3
    before = np.array([(x + third, y + third), (x + third, y - third), (x - third, y - third)], np.float32)
    corners = np.ones((len(images), 3, 3))
    corners[..., :2] = before + moves.astype(np.float32)
    return np.ascontiguousarray(np.linalg.solve(corners, before.astype(np.float64)).transpose(0, 2, 1))


def _displacements(p: Params, drawn: Deformation, ops: Ops) -> tuple[Field, Field]:
    """Return the horizontal and vertical displacement of each pixel, in pixels."""
    gain = float(np.float32(p.alpha))
    right, down = (
        ops.smooth(field, p.sigma, truncate=3.0, border="reflect", gain=gain)
        for field in (drawn.right, drawn.down)
    )
    return right, down


def _levels(side: float, *rows: tuple[float, float, float]) -> list[Params]:
    return [Params(alpha * side, sigma * side, move * side) for alpha, sigma, move in rows]


_PHOTOS = ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02))


@corruption(
    "digital",
    draw=draw,
    moves=True,
    graded=False,  # severities 1 and 2 deform the whole image, 3 to 5 only locally
    levels={
        "imagenet": _levels(244, *_PHOTOS),  # a published typo for 224
        "inception": _levels(360, *_PHOTOS),
        "tiny": _levels(
            64, (0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)
        ),
        "cifar": _levels(
            32, (0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)
        ),
    },
)
def elastic_transform(images: Images, p: Params, drawn: Deformation, ops: Ops) -> Images:
    """Stretch the image by a random affine map, then move each pixel by a smooth random field."""
    stretched = ops.affine(images, _inverse(images, drawn.moves), border="mirror")
    return ops.displace(stretched, *_displacements(p, drawn, ops))


@elastic_transform.at("mnist", draw=draw, levels=_levels(28, *_PHOTOS), published=1)
def digits(images: Images, p: Params, drawn: Deformation, ops: Ops) -> Images:
    """As for photos, rounded, and black outside."""
    stretched = ops.affine(images, _inverse(images, drawn.moves), border="zero")
    return ops.displace_zero(stretched, *_displacements(p, drawn, ops))

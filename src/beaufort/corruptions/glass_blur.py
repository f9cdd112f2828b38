"""Glass blur: seen through frosted glass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Field, Images, Ops, Pixels, Random, WholePixels, corruption


class Params(NamedTuple):
    """Roughness of the glass."""

    sigma: Pixels
    """Standard deviation of the Gaussian blur before and after."""
    distance: WholePixels
    """Maximum distance, in rows and columns, of the new value of a pixel."""
    sweeps: int
    """Number of times that every pixel is moved."""


def _visited(images: Images, p: Params) -> tuple[int, int, int]:
    height, width = images.shape[1:3]
    return p.sweeps, height - 2 * p.distance, width - 2 * p.distance


def draw(random: Random, images: Images, p: Params) -> Field:
    """Draw a column and a row offset per visit, in {-d, …, d - 1}."""
    small = np.int8 if p.distance < 128 else np.int16
    return random.integers((*_visited(images, p), 2), -p.distance, p.distance, small)


_PHOTOS = [Params(0.7, 1, 2), Params(0.9, 2, 1), Params(1, 2, 3), Params(1.1, 3, 2), Params(1.5, 4, 2)]


@corruption(
    "blur",
    draw=draw,
    levels={
        "imagenet": _PHOTOS,
        "inception": [
            Params(0.8, 1, 3),
            Params(1, 3, 1),
            Params(1.1, 2, 4),
            Params(1.2, 4, 2),
            Params(1.6, 5, 2),
        ],
        "tiny": [
            Params(0.1, 1, 1),
            Params(0.5, 1, 1),
            Params(0.6, 1, 2),
            Params(0.7, 2, 1),
            Params(0.9, 2, 2),
        ],
        "cifar": [
            Params(0.05, 1, 1),
            Params(0.25, 1, 1),
            Params(0.4, 1, 1),
            Params(0.25, 1, 2),
            Params(0.4, 1, 2),
        ],
    },
)
def glass_blur(images: Images, p: Params, offsets: Field, ops: Ops) -> Images:
    """Blur, move pixels locally, and blur again.

    Pixels are meant to be swapped, but the published code only copies: the other pixel keeps its
    value. A sweep runs from the last pixel to the first, in place.
    """
    moved = ops.copy_sweeps(ops.gaussian(images, p.sigma), offsets, p.distance)
    return ops.gaussian(moved, p.sigma)


class Swaps(NamedTuple):
    """Visits that swap, and their neighbors."""

    gates: Field
    offsets: Field


def draw_swaps(random: Random, images: Images, p: Params) -> Swaps:
    """Draw a fair gate per visit, and an offset where it is open."""
    return Swaps(*random.gated_pairs(_visited(images, p), -p.distance, p.distance))


@glass_blur.at("mnist", draw=draw_swaps, levels=_PHOTOS, published=1)
def digits(images: Images, p: Params, swaps: Swaps, ops: Ops) -> Images:
    """As for photos, but swap in half of the visits, and blur along columns only."""
    blurred = ops.gaussian(images, p.sigma, horizontal=False)
    swapped = ops.swap_sweeps(blurred, swaps.gates, swaps.offsets, p.distance)
    return ops.gaussian(swapped, p.sigma, horizontal=False, nearest=True)

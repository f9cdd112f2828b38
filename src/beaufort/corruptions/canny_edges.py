"""Canny edges: the outline of the digit."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Images, Ops, corruption


class Params(NamedTuple):
    """What counts as an edge."""

    sigma: float
    """Standard deviation of the Gaussian that comes first, in pixels."""
    low: float
    high: float
    """Least slope of an edge, and of one point in it; the intensity range is [0, 1]."""


@corruption("digits", levels={"mnist": [Params(1.0, 0.1, 0.2)]})
def canny_edges(images: Images, p: Params, ops: Ops) -> Images:
    """Replace the image by its edges, white on black; each channel by its own.

    An edge is one pixel wide whatever the size of the image: nothing here grows at scale `relative`.
    """
    return ops.outline(images, p.sigma, p.low, p.high)

"""Canny edges: the outline of the digit."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Images, Ops, corruption


class Params(NamedTuple):
    """Thresholds of the edges."""

    sigma: float
    """Standard deviation of the initial Gaussian, in pixels."""
    low: float
    high: float
    """Minimum gradient along an edge, and of at least one of its points; the intensity range is [0, 1]."""


@corruption("digits", levels={"mnist": [Params(1.0, 0.1, 0.2)]})
def canny_edges(images: Images, p: Params, ops: Ops) -> Images:
    """Replace each channel by its edges, white on black.

    Edges are one pixel wide at every size: no constant grows at scale `relative`.
    """
    return ops.outline(images, p.sigma, p.low, p.high)

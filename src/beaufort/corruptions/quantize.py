"""Quantize: few shades of gray."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Images, Ops, corruption


class Params(NamedTuple):
    """Number of shades."""

    bits: int
    """The number of shades is 2^bits."""


@corruption("digits", levels={"mnist": [Params(b) for b in (5, 4, 3, 2, 1)]}, published=5)
def quantize(images: Images, p: Params, ops: Ops) -> Images:
    """Round every value to the nearest of 2^bits shades."""
    top = 2**p.bits - 1
    shades = np.rint(np.arange(256) / 255 * top) / top
    return ops.look_up(images, np.rint(shades * 255).astype(np.uint8))

"""Dotted line: a row of dots through the digit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Pixels, Random, corruption
from beaufort.corruptions._geometry import draw_strokes


class Params(NamedTuple):
    """Size of the dots."""

    unit: Pixels = 1.0
    """Half the length of a dot."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw the heights at which the line starts and ends, on a 28×28 digit."""
    return random.host.integers((2,), 0, 27)


@corruption("digits", draw=draw, levels={"mnist": [Params()]})
def dotted_line(images: Images, p: Params, heights: Array, ops: Ops) -> Images:
    """Draw a soft white line across the digit that skips two of four columns."""
    ends = np.zeros((len(images), 1, 4))
    ends[:, 0, 1], ends[:, 0, 2], ends[:, 0, 3] = heights[:, 0], 27, heights[:, 1]
    return draw_strokes(images, ends, np.ones(len(images), np.int64), p.unit, ops, dash=2)

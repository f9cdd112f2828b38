"""Line: a stroke through the digit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Pixels, Random, corruption
from beaufort.corruptions._geometry import draw_strokes


class Params(NamedTuple):
    """Thickness of the stroke."""

    unit: Pixels = 1.0
    """About a third of its width."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw the ends (x0, y0, x1, y1) near the left and the right edge of a 28×28 digit."""
    left = random.host.integers((1,), 0, 5)
    right = random.host.integers((1,), 22, 27)
    heights = random.host.integers((2,), 0, 27)
    return np.concatenate([left, heights[:, :1], right, heights[:, 1:]], axis=1)


@corruption("digits", draw=draw, levels={"mnist": [Params()]})
def line(images: Images, p: Params, ends: Array, ops: Ops) -> Images:
    """Draw a soft white line from left to right."""
    return draw_strokes(images, ends[:, None], np.ones(len(images), np.int64), p.unit, ops)

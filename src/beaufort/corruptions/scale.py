"""Scale: the digit, smaller."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Images, Ops, corruption
from beaufort.corruptions._geometry import about_center


class Params(NamedTuple):
    """Size of the result."""

    factor: float
    """Ratio of the new side to the old one."""


@corruption(
    "digits", moves=True, levels={"mnist": [Params(s) for s in (0.9, 0.8, 0.7, 0.6, 0.5)]}, published=3
)
def scale(images: Images, p: Params, ops: Ops) -> Images:
    """Shrink the image about its center, black outside."""
    return about_center(images, np.broadcast_to(np.eye(2) * (1 / p.factor), (len(images), 2, 2)), ops)

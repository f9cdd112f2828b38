"""Circular motion blur: the image turns while the shutter is open."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Images, Ops, corruption

_STEPS = np.linspace(-1, 1, 21)
_WEIGHTS = np.exp(-2 * _STEPS**2)


class Params(NamedTuple):
    """How far it turns."""

    magnitude: float
    """1.5 degrees to both sides for each unit."""


@corruption("unseen", levels={"cifar": [Params(m) for m in (2.8, 3.6, 4.4, 5.2, 6)]})
def circular_motion_blur(images: Images, p: Params, ops: Ops) -> Images:
    """Average 21 copies that are turned about the middle; the corners darken."""
    angles = np.deg2rad(_STEPS * 1.5 * p.magnitude)
    return ops.turned(images, angles, _WEIGHTS / _WEIGHTS.sum())

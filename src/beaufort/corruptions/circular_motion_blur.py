"""Circular motion blur: the camera rotates while the shutter is open."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Images, Ops, corruption

_STEPS = np.linspace(-1, 1, 21)
_WEIGHTS = np.exp(-2 * _STEPS**2)


class Params(NamedTuple):
    """Rotation."""

    magnitude: float
    """Angle to both sides in units of 1.5 degrees."""


@corruption("unseen", levels={"cifar": [Params(m) for m in (2.8, 3.6, 4.4, 5.2, 6)]})
def circular_motion_blur(images: Images, p: Params, ops: Ops) -> Images:
    """Average 21 copies rotated about the center; the corners become darker."""
    angles = np.deg2rad(_STEPS * 1.5 * p.magnitude)
    return ops.turned(images, angles, _WEIGHTS / _WEIGHTS.sum())

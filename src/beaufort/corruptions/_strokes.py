"""Lines in the coordinates of a 28×28 digit, drawn on an image of any size."""

from __future__ import annotations

import numpy as np

from beaufort._core.arrays import Array, Images
from beaufort.corruptions._kernels import Ops


def draw_strokes(
    images: Images, segments: Array, counts: Array, unit: float, ops: Ops, *, dash: float = 0.0
) -> Images:
    """Draw segments (x0, y0, x1, y1), given for 28×28, in white."""
    height, width = images.shape[1:3]
    fit = np.array([width, height, width, height]) / 28
    return ops.strokes(images, segments * fit, counts, unit=unit, dash=dash * unit)

"""Noise of a given color: waves of all frequencies with random phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from beaufort.corruptions import Field, Images, Ops, Random


def phases(random: Random, images: Images) -> Field:
    """Draw half of the phases of one field; the others are the same, rotated by 180 degrees."""
    height, width = images.shape[1:3]
    return random.uniform((height, (width + 1) // 2), 0, 2 * np.pi, np.float64)


def colored(half: Field, images: Images, amplitude: Callable[[Any], Any], ops: Ops) -> Any:
    """Return noise `(n, h, w)` of standard deviation 1 with given amplitudes by squared frequency.

    A frequency of 1 is a wave as long as the short side. The phases of a real field would be *negated* by
    the rotation; as in the published programs, they are copied and the imaginary part is dropped.
    """
    height, width = images.shape[1:3]
    rows, columns = ops.grid(images)
    side = min(height, width)
    down, across = (rows - height // 2) * (side / height), (columns - width // 2) * (side / width)
    r, c = np.mgrid[:height, :width]
    other = c >= half.shape[2]
    r, c = np.where(other, height - 1 - r, r), np.where(other, width - 1 - c, c)
    phase = ops.real(half)[:, ops.lift(r, images), ops.lift(c, images)]
    noise = ops.synthesize(amplitude(down**2 + across**2), phase)
    mean = noise.mean((-2, -1), keepdims=True)
    return noise / ops.sqrt(((noise - mean) ** 2).mean((-2, -1), keepdims=True))

"""Ripple: wavy rows and columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from beaufort.corruptions import Array, Images, Ops, Random, corruption
from beaufort.corruptions._geometry import sample


class Params(NamedTuple):
    """Height of the waves."""

    magnitude: float
    """Amplitude in units of 0.25 percent of the short side."""


class Waves(NamedTuple):
    """Waves of rows and of columns, `(n, 2)` each."""

    lengths: Array
    """Fractions of the short side."""
    phases: Array


def draw(random: Random, images: Images, p: Params) -> Waves:
    """Draw two wavelengths and two phases."""
    host = random.host
    return Waves(host.uniform((2,), 0.1, 0.3, np.float64), host.uniform((2,), 0, 2 * np.pi, np.float64))


@corruption("unseen", moves=True, draw=draw, levels={"cifar": [Params(m) for m in (5.5, 6, 6.5, 7.5, 8)]})
def ripple(images: Images, p: Params, drawn: Waves, ops: Ops) -> Images:
    """Shift rows and columns by sine waves."""
    side = min(images.shape[1:3])

    def waved(at: Any, axis: int) -> Any:
        length, phase = (ops.lift(one[:, axis, None, None], images) for one in drawn)
        return at + 0.0025 * p.magnitude * side * ops.sin(2 * np.pi * at / (length * side) + phase)

    rows, columns = ops.grid(images)
    return ops.to_bytes(sample(ops.real(images), waved(rows, 0), waved(columns, 1), ops))

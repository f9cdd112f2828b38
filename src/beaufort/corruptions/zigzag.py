"""Zigzag: a jagged stroke through the digit."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort.corruptions import Array, Images, Ops, Pixels, Random, corruption
from beaufort.corruptions._geometry import draw_strokes

_LEFT, _RIGHT = 2, 25
_HALF_WAVE, _AMPLITUDE = 4, 2


class Params(NamedTuple):
    """Thickness of the stroke."""

    unit: Pixels = 1.0
    """About a third of its width."""


def draw(random: Random, images: Images, p: Params) -> Array:
    """Draw the height of the left end and the drop of the right end, on a 28×28 digit."""
    return np.concatenate([random.host.integers((1,), 0, 27), random.host.integers((1,), -5, 5)], axis=1)


@lru_cache(maxsize=16)
def _segments(drop: int) -> NDArray[np.float64]:
    """Return the zigzag from (2, 0) to (25, drop) as segments, `(k, 4)`.

    It has a peak every 4 pixels, 2 pixels off on alternating sides; the last point follows the published
    formula.
    """
    angle = math.atan(drop / (_RIGHT - _LEFT))
    length = (_RIGHT - _LEFT) / math.cos(angle)
    points = [(0.0, 0.0)]
    peak = 0.0
    for i in range(int((length - _HALF_WAVE / 2) / _HALF_WAVE) + 1):
        peak = _AMPLITUDE * (-1) ** i
        points.append((_HALF_WAVE * i + _HALF_WAVE / 2, peak))
    rest = length - _HALF_WAVE * int(length / _HALF_WAVE)
    if rest:
        points.append((length, peak / (_HALF_WAVE / 2 * rest)))
    along, off = np.array(points).T
    x = _LEFT + along * math.cos(angle) - off * math.sin(angle)
    y = along * math.sin(angle) + off * math.cos(angle)
    return np.stack([x[:-1], y[:-1], x[1:], y[1:]], axis=1)


@corruption("digits", draw=draw, levels={"mnist": [Params()]})
def zigzag(images: Images, p: Params, course: Array, ops: Ops) -> Images:
    """Draw a soft white zigzag from left to right."""
    lines = [_segments(int(drop)) for drop in course[:, 1]]
    counts = np.array([len(segments) for segments in lines], np.int64)
    segments = np.zeros((len(images), counts.max(initial=0), 4))
    for i, (own, start) in enumerate(zip(lines, course[:, 0], strict=True)):
        segments[i, : len(own)] = own
        segments[i, : len(own), 1::2] += start
    return draw_strokes(images, segments, counts, p.unit, ops)

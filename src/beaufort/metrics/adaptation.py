"""Metrics of streams: means with intervals that respect the dependence within a stream, and collapse."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats import Estimate, mean_interval, paired_interval

_FALSE_ALARMS = 0.005
"""Probability that a model as good as the source model is said to collapse."""
_LEAST_FRACTION = 0.2
"""Smallest part of a stream that counts as a collapse."""
_LEAST_BLOCKS = 10
_MOST_BLOCKS = 12
"""Blocks of a stream of one seed; fewer and longer ones include longer dependence."""


def stream_mean(
    values: NDArray[np.float64],
    images: NDArray[np.int64],
    conditions: NDArray[np.int64],
    block: int,
    level: float = 0.95,
    *,
    low: float = -1.0,
) -> Estimate:
    """Return the mean over streams of several seeds, with an interval for other images and other orders.

    Two sources of variance are added. Images: an image is in a stream several times and in all seeds, so
    images are the units. Order: the mean varies between seeds, because the state of a model links all that
    follows. With one seed, the excess variance of blocks of neighbors over that of independent images takes
    its place, as in a block bootstrap; it misses dependence that is longer than a block. The quantile is that
    of Student's t, with Satterthwaite's degrees of freedom. The interval contains that of the means of the
    images, which is valid for few images and for rare errors.

    Args:
        values: one per seed and position, such as errors, or differences of the errors of two models.
        images: index of the image.
        conditions: index of the condition, whose mean is removed before blocks are compared.
        block: smallest number of neighbors in a block, such as the batch size; there are at most 12 blocks.
        level: of the interval.
        low: the smallest value there can be: 0 for errors, -1 for differences; the largest is 1.
    """
    from scipy.special import stdtrit

    mean = float(values.mean())
    units = np.unique(images, return_inverse=True)[1].ravel()
    count = int(units.max()) + 1
    by_unit = np.bincount(units, values.ravel(), count) / np.bincount(units, minlength=count)
    bounded = (mean_interval if low == 0 else paired_interval)(by_unit, low=low, high=1.0, level=level)
    sums = np.bincount(units, (values - mean).ravel(), count)
    by_image = float((sums**2).sum()) / values.size**2 * count / max(1, count - 1)
    if len(values) > 1:
        by_order, freedom = float(values.mean(axis=1).var(ddof=1)) / len(values), len(values) - 1
    else:
        by_order, freedom = _excess(values[0], conditions[0], block)
    variance = by_image + by_order
    half = 0.0
    if variance:
        degrees = variance**2 / (by_image**2 / max(1, count - 1) + by_order**2 / freedom)
        half = float(stdtrit(degrees, (1 + level) / 2)) * math.sqrt(variance)
    ends = max(low, min(mean - half, bounded.low)), min(1.0, max(mean + half, bounded.high))
    return Estimate(mean, *ends, count, level)


def _excess(values: NDArray[np.float64], conditions: NDArray[np.int64], block: int) -> tuple[float, int]:
    """Return the variance of a mean by dependence of neighbors, and its degrees of freedom."""
    means = np.bincount(conditions, values) / np.maximum(1, np.bincount(conditions))
    rest = values - means[conditions]
    starts = np.arange(0, len(rest), max(block, -(-len(rest) // _MOST_BLOCKS)))
    sums = np.add.reduceat(rest, starts)
    blocks = len(sums)
    together = float((sums**2).sum()) * blocks / max(1, blocks - 1)
    return max(0.0, together - float((rest**2).sum())) / len(rest) ** 2, max(1, blocks - 1)


def collapse_position(differences: NDArray[np.float64], block: int) -> int | None:
    """Return the position from which an adapted model is worse than the source model; None if there is none.

    The position is where the sum of the differences up to the end is largest. It is a collapse if this sum is
    larger than a random walk without drift reaches in one of 200 streams, and at least a fifth of the stream
    follows.

    Args:
        differences: 1 where only the adapted model is wrong, -1 where only the source model is, else 0.
        block: number of neighbors whose sum is one step of the walk, such as the batch size.
    """
    from scipy.special import ndtri

    length = len(differences)
    step = max(1, min(block, length // _LEAST_BLOCKS))
    starts = np.arange(0, length - length % step, step)
    if len(starts) < 2:
        return None
    sums = np.add.reduceat(differences.astype(np.float64), starts)
    after = np.cumsum(sums[::-1])[::-1]
    best = int(after.argmax())
    spread = math.sqrt(float((np.diff(sums) ** 2).mean()) / 2 * len(sums))  # robust against slow drift
    limit = max(float(ndtri(1 - _FALSE_ALARMS / 2)) * spread, 0.0)
    position = int(starts[best])
    if after[best] <= limit or length - position < _LEAST_FRACTION * length:
        return None
    return position

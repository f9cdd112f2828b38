"""Levels of simultaneous intervals: single-step max-T over the joint distribution of the means.

Differences of models on the same images are correlated: A - B and A - C share A. Bonferroni's correction
ignores that. The largest of all standardized means (max-T; Westfall & Young, 1993) uses it: for a normal
distribution with the correlations measured over images, the level of each interval is that at which the
probability of any miss is 1 - level. Each interval then has the same form as a single one, at a level between
1 - (1 - level)/m and `level`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats.estimate import validate_level

DRAWS = 20_000
_CHUNK = 4_000_000
"""Maximum number of simulated means in memory at a time."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Family:
    """Simultaneous statements."""

    size: int
    smallest: Floats
    """The smallest of all p-values in each simulated repetition, sorted; empty for a single statement."""

    def adjusted(self, p: float) -> float:
        """Return the p-value adjusted for the family: the probability that any is as small.

        It is at most Bonferroni's.
        """
        if self.size <= 1:
            return min(1.0, p)
        return float(min(1.0, self.size * p, max(p, np.interp(p, self.smallest, _ranks(self.smallest)))))

    def level(self, level: float) -> float:
        """Return the level of each interval at which all of them hold simultaneously at `level`.

        The adjusted p-value is below 1 - `level` exactly if the p-value is below 1 less the returned level.
        """
        miss = 1 - validate_level(level)
        if self.size <= 1:
            return level
        joint = float(np.interp(miss, _ranks(self.smallest), self.smallest))
        return 1 - min(miss, max(joint, miss / self.size))


def simultaneous(
    columns: Sequence[NDArray[np.float64]],
    pairs: NDArray[np.intp],
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Family:
    """Return the family of all differences of pairs of columns.

    Args:
        columns: one array for each number, with a value for each image.
        pairs: places of the two columns of each difference, `(differences, 2)`.
        draws: number of simulated repetitions.
        seed: seed of the simulation.

    >>> rng = np.random.default_rng(0)
    >>> columns = list(rng.standard_normal((3, 500)))
    >>> pairs = np.array([(0, 1), (0, 2), (1, 2)])
    >>> family = simultaneous(columns, pairs)
    >>> round(1 - family.level(0.95), 3)  # Bonferroni: 0.017
    0.019
    """
    from scipy.special import ndtr

    if len(pairs) <= 1:
        return Family(len(pairs), np.empty(0))
    root, deviations = _factor(columns, pairs)
    rng = np.random.default_rng(seed)
    first, second = pairs[:, 0], pairs[:, 1]
    constant = deviations == 0
    scale = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=~constant).astype(np.float32)
    largest = np.empty(draws)
    step = max(1, min(draws, _CHUNK // len(pairs)))
    for start in range(0, draws, step):
        count = min(step, draws - start)
        drawn = (rng.standard_normal((count, root.shape[0])) @ root).astype(np.float32)
        means = np.abs(drawn[:, first] - drawn[:, second]) * scale
        found = means.max(axis=1)
        if constant.any():  # no correlation can be measured: as if they were independent
            found = np.maximum(found, np.abs(rng.standard_normal((count, int(constant.sum())))).max(axis=1))
        largest[start : start + count] = found
    return Family(len(pairs), np.sort(2 * ndtr(-largest)))


def _factor(columns: Sequence[Floats], pairs: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return a root of the columns' covariance, and the standard deviation of each difference."""
    values = np.stack(columns, axis=1)
    centered = values - values.mean(axis=0)
    n = len(values)
    covariance = centered.T @ centered / max(n - 1, 1)
    # with few images, correlations are measured too high: shrink them as if one image per column were noise
    weight = min(1.0, len(columns) / max(n, 1))
    covariance = (1 - weight) * covariance + weight * np.diag(np.diag(covariance))
    i, j = pairs[:, 0], pairs[:, 1]
    variance = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
    scale = float(np.diag(covariance).max())
    deviations = np.sqrt(np.where(variance > 1e-12 * scale, variance, 0.0))
    values, vectors = np.linalg.eigh(covariance)
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T, deviations


def _ranks(smallest: Floats) -> Floats:
    return np.arange(1, len(smallest) + 1) / (len(smallest) + 1)

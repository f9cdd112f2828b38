"""The mean of paired differences: an interval that also holds where only a few images differ.

Two models differ on few images. If these are very few, the standard deviation is unreliable and the interval
of Student's t covers too rarely; where many differ, Gaffke's interval is wider than necessary. The half-width
is

    √(t²S + g²R²/(1 + S/(dR²))) / n

with S = n/(n - 1) Σe², the deviations e from the mean, the distance R from the mean to the most extreme value
that an image can have on that side, g = -ln(tail) for tail = (1 - level)/2, the quantiles t and z of
Student's distribution and the normal one, and d = 2z². Two limits are derived:

- S = 0: no image differs from the others. Images that differ by R and come at a rate of λ in n images are all
  missed with probability exp(-λ), which is above `tail` up to λ = g. The mean may therefore be off by gR/n.
- S/R² → ∞: the second term vanishes, and Student's interval remains.

The factor 2 in d is the smallest that kept the coverage in simulations of everything between the limits. The
center is shifted by (1 + 2z²)/12 Σe³/(Sn), half of Johnson's correction for skewness (1978); the second term
covers the other half. Where Gaffke's interval ends earlier on a side, its end is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from beaufort.metrics.stats.bounded import (
    BoundedValues,
    gaffke_interval,
    gaffke_p_value,
    gaffke_tail,
    least_count,
)
from beaufort.metrics.stats.estimate import Estimate, validate_level

FEW = 6.0
"""Largest √S/R at which Gaffke's interval is computed too; above it, it is the wider one."""


def paired_interval(
    values: ArrayLike, *, low: float = -1.0, high: float = 1.0, level: float = 0.95
) -> Estimate:
    """Return the mean of paired differences with an interval that covers the true mean at `level`.

    Args:
        values: difference of each image; images are independent of each other.
        low: least difference that an image can have.
        high: largest difference that an image can have.
        level: confidence level.

    >>> f"{paired_interval([1] * 30 + [-1] * 10 + [0] * 160):.1%}"
    '10.0 % [3.9, 16.2]'
    >>> f"{paired_interval([0] * 200):.1%}"
    '0.0 % [-1.8, 1.8]'
    """
    numbers = BoundedValues(values, low, high)
    moments = _Moments.of(numbers)
    tail = (1 - validate_level(level)) / 2
    if numbers.n == 1:
        return gaffke_interval(numbers, level)
    lower, upper = moments.lower(tail), moments.upper(tail)
    if moments.few:
        gaffke = gaffke_interval(numbers, level)
        lower, upper = max(lower, gaffke.low), min(upper, gaffke.high)
    mean = numbers.mean
    return Estimate(mean, min(max(lower, low), mean), max(min(upper, high), mean), numbers.n, level)


def paired_p_value(values: ArrayLike, *, low: float = -1.0, high: float = 1.0, null: float = 0.0) -> float:
    """Return the two-sided p-value of the hypothesis that the mean of paired differences is `null`.

    It is below 1 - level exactly if `paired_interval` at that level does not contain `null`.

    >>> round(paired_p_value([1] * 30 + [-1] * 10 + [0] * 160), 5)
    0.00159
    """
    numbers = BoundedValues(values, low, high)
    moments = _Moments.of(numbers)
    if numbers.n == 1:
        return gaffke_p_value(numbers, null)
    found = 2 * moments.tail(null)
    return min(found, gaffke_p_value(numbers, null)) if moments.few else found


def paired_images_to_decide(
    values: ArrayLike, *, limit: float, low: float = -1.0, high: float = 1.0, level: float = 0.95
) -> int | None:
    """Return how many images like these would exclude `limit` from `paired_interval`; None if none would.

    >>> paired_images_to_decide([1] * 30 + [-1] * 10 + [0] * 160, limit=0.05)
    293
    """
    numbers = BoundedValues(values, low, high)
    tail = (1 - validate_level(level)) / 2
    if numbers.mean == limit or not low <= limit <= high:
        return None
    moments = _Moments.of(numbers)

    def decided(count: int) -> bool:
        if count > 1 and moments.repeated(count / numbers.n).excludes(limit, tail):
            return True
        return moments.few and gaffke_tail(numbers, limit, count) < tail

    return least_count(decided)


def paired_half_width(deviation: float, n: int, most: float, level: float = 0.95) -> float:
    """Return the half-width for `n` images with a standard deviation, if one image can be off by `most`.

    >>> round(paired_half_width(0.4, 1000, 1.0), 4)
    0.0248
    """
    tail = (1 - level) / 2
    return _half_width(n * deviation**2, most, _quantiles(tail, n)) / n


@dataclass(frozen=True)
class _Quantiles:
    z: float
    t: float
    g: float


def _quantiles(tail: float, n: int) -> _Quantiles:
    from scipy.special import ndtri, stdtrit

    return _Quantiles(-float(ndtri(tail)), -float(stdtrit(n - 1, tail)), -math.log(tail))


def _half_width(square: float, most: float, at: _Quantiles) -> float:
    """Return the half-width of a sum whose deviations have the given square."""
    fade = 2 * (at.z * most) ** 2
    fraction = fade / (fade + square) if fade + square > 0 else float(most > 0)
    return math.hypot(at.t * math.sqrt(square), at.g * most * math.sqrt(fraction))


@dataclass(frozen=True)
class _Moments:
    """What the interval depends on."""

    n: float
    mean: float
    square: float
    """S: the sum of squared deviations, times n / (n - 1)."""
    skew: float
    """The sum of cubed deviations over S."""
    below: float
    above: float
    """Distances from the mean to the least and the largest value of an image."""

    @classmethod
    def of(cls, numbers: BoundedValues) -> _Moments:
        e = numbers.distinct - numbers.mean
        squares = float(numbers.counts @ e**2)
        cubes = float(numbers.counts @ e**3)
        flat = squares <= 1e-24 * numbers.n * (numbers.high - numbers.low) ** 2  # rounding alone
        square = 0.0 if flat or numbers.n == 1 else squares * numbers.n / (numbers.n - 1)
        skew = cubes / square if square else 0.0
        below, above = max(0.0, numbers.mean - numbers.low), max(0.0, numbers.high - numbers.mean)
        return cls(numbers.n, numbers.mean, square, skew, below, above)

    @property
    def few(self) -> bool:
        """Whether so few images vary that Gaffke's interval may be narrower."""
        return math.sqrt(self.square) <= FEW * max(self.below, self.above)

    def repeated(self, times: float) -> _Moments:
        """Return the moments if there were as many times the images."""
        n = self.n * times
        square = self.square * times * (self.n - 1) / self.n * n / (n - 1) if self.n > 1 else 0.0
        skew = self.skew * (self.n / (self.n - 1)) * (n - 1) / n if self.n > 1 else 0.0
        return _Moments(n, self.mean, square, skew, self.below, self.above)

    def lower(self, tail: float) -> float:
        return self._end(tail, -1, self.below)

    def upper(self, tail: float) -> float:
        return self._end(tail, 1, self.above)

    def _end(self, tail: float, sign: int, most: float) -> float:
        at = _quantiles(tail, self.n)  # type: ignore[arg-type]
        shift = (1 + 2 * at.z**2) / 12 * self.skew
        return self.mean + (shift + sign * _half_width(self.square, most, at)) / self.n

    def excludes(self, limit: float, tail: float) -> bool:
        return self._gap(limit, tail) > 0

    def _gap(self, limit: float, tail: float) -> float:
        """Return the distance from `limit` to the interval, negative inside."""
        return self.lower(tail) - limit if limit < self.mean else limit - self.upper(tail)

    def tail(self, null: float) -> float:
        """Return the tail at which an end is `null`, at most 0.5: false position, with bisections between."""
        from scipy.special import ndtr

        near, far = 1e-6, 37.0  # normal quantiles of the tail
        inside, outside = self._gap(null, float(ndtr(-far))), self._gap(null, float(ndtr(-near)))
        if null == self.mean or outside <= 0:
            return 0.5
        if inside > 0:
            return 0.0
        for step in range(100):
            fraction = outside / (outside - inside) if step % 3 and math.isfinite(inside) else 0.5
            middle = near + (far - near) * min(max(fraction, 0.001), 0.999)
            gap = self._gap(null, float(ndtr(-middle)))
            if gap > 0:
                near, outside = middle, gap
            else:
                far, inside = middle, gap
            if far - near < 1e-10 * far or gap == 0:
                break
        return float(ndtr(-(near + far) / 2))

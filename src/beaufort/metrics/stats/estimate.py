"""A number and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A value with the interval that covers the truth in `level` of all repetitions.

    >>> f"{Estimate(0.7671, 0.752, 0.7822, 1000):.1%}"
    '76.7 % [75.2, 78.2]'
    >>> f"{Estimate(1.0, 1.0, 1.0, 1000):.1%}"
    '100.0 % (by definition)'
    >>> f"{Estimate(-1e-17, -0.116, 0.116, 30):.1%}"  # what rounds to zero has no sign
    '0.0 % [-11.6, 11.6]'
    """

    value: float
    low: float
    high: float
    n: int
    """Number of base images, or clusters of them, that it is computed from."""
    level: float = 0.95

    def __format__(self, spec: str) -> str:
        """As text with the digits asked for, `.1%` or `.3f`."""
        if spec.endswith("%"):
            value, low, high = (f"{100 * x:z{spec[:-1]}f}" for x in (self.value, self.low, self.high))
            value += " %"
        else:
            value, low, high = (f"{x:{spec}}" for x in (self.value, self.low, self.high))
        return f"{value} (by definition)" if self.exact else f"{value} [{low}, {high}]"

    def __str__(self) -> str:
        return f"{self:.4g}"

    @property
    def exact(self) -> bool:
        """Whether the value is exact by definition, with an interval of width 0: a baseline's mCE, say."""
        return self.low == self.high

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

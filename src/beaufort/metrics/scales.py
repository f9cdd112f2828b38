"""Axes on which accuracies of ordinary models lie on a line."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import UnknownNameError
from beaufort._core.registry import unknown_message

Floats = NDArray[np.float64]


class Scale(NamedTuple):
    """A stretch of the axis from 0 to 100 percent.

    >>> logit = get_scale("logit")
    >>> logit.forward([50.0, 75.0]).round(4).tolist()
    [0.0, 1.0986]
    >>> logit.inverse(logit.forward([12.5])).round(6).tolist()
    [12.5]
    """

    name: str
    stretch: Callable[[Floats], Floats]
    """From shares to the axis; shares of 0 and 1 may be infinite there."""
    shrink: Callable[[Floats], Floats]
    """The way back."""

    def forward(self, percent: ArrayLike) -> Floats:
        """Percentages on the axis."""
        return self.stretch(np.asarray(percent, np.float64))

    def inverse(self, z: ArrayLike) -> Floats:
        """Percentages from the axis."""
        return self.shrink(np.asarray(z, np.float64))


def _logit(percent: Floats) -> Floats:
    share = percent / 100
    with np.errstate(divide="ignore"):
        return np.log(share) - np.log1p(-share)


def _sigmoid(z: Floats) -> Floats:
    return 50 * (1 + np.tanh(z / 2))  # never overflows


def _probit(percent: Floats) -> Floats:
    normal = NormalDist()

    def one(value: float) -> float:
        if not 0 < value < 100:
            return math.nan if math.isnan(value) else math.copysign(math.inf, value - 50)
        return normal.inv_cdf(value / 100)

    return np.array([one(float(value)) for value in percent.ravel()]).reshape(percent.shape)


def _normal_share(z: Floats) -> Floats:
    shares = [50 * math.erfc(-float(value) / math.sqrt(2)) for value in z.ravel()]
    return np.array(shares).reshape(z.shape)


SCALES = {
    "logit": Scale("logit", _logit, _sigmoid),
    "probit": Scale("probit", _probit, _normal_share),
    "linear": Scale("linear", lambda percent: percent, lambda z: z),
}
"""By name: `logit` is the paper's; `linear` is in percentage points."""


def get_scale(name: str) -> Scale:
    """A scale by name."""
    if name not in SCALES:
        raise UnknownNameError(unknown_message("scale", name, SCALES))
    return SCALES[name]

"""Axes on which the accuracies of standard models are linearly related."""

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
    """A transformation of the axis from 0 to 100 percent.

    >>> logit = get_scale("logit")
    >>> logit.forward([50.0, 75.0]).round(4).tolist()
    [0.0, 1.0986]
    >>> logit.inverse(logit.forward([12.5])).round(6).tolist()
    [12.5]
    """

    name: str
    stretch: Callable[[Floats], Floats]
    """Map percentages to the axis; 0 and 100 may be infinite."""
    shrink: Callable[[Floats], Floats]
    """Inverse of `stretch`."""

    def forward(self, percent: ArrayLike) -> Floats:
        """Map percentages to the axis."""
        return self.stretch(np.asarray(percent, np.float64))

    def inverse(self, z: ArrayLike) -> Floats:
        """Map values on the axis to percentages."""
        return self.shrink(np.asarray(z, np.float64))


def _logit(percent: Floats) -> Floats:
    fraction = percent / 100
    with np.errstate(divide="ignore"):
        return np.log(fraction) - np.log1p(-fraction)


def _sigmoid(z: Floats) -> Floats:
    return 50 * (1 + np.tanh(z / 2))  # never overflows


def _probit(percent: Floats) -> Floats:
    normal = NormalDist()

    def one(value: float) -> float:
        if not 0 < value < 100:
            return math.nan if math.isnan(value) else math.copysign(math.inf, value - 50)
        return normal.inv_cdf(value / 100)

    return np.array([one(float(value)) for value in percent.ravel()]).reshape(percent.shape)


def _inverse_probit(z: Floats) -> Floats:
    percents = [50 * math.erfc(-float(value) / math.sqrt(2)) for value in z.ravel()]
    return np.array(percents).reshape(z.shape)


SCALES = {
    "logit": Scale("logit", _logit, _sigmoid),
    "probit": Scale("probit", _probit, _inverse_probit),
    "linear": Scale("linear", lambda percent: percent, lambda z: z),
}
"""By name: `logit` is used in the paper, `linear` is in percentage points."""


def get_scale(name: str) -> Scale:
    """Return a scale by name."""
    if name not in SCALES:
        raise UnknownNameError(unknown_message("scale", name, SCALES))
    return SCALES[name]

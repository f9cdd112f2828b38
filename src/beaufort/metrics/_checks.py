"""Input to arrays, or a sentence about what is wrong with it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort.errors import OptionError
from beaufort.metrics._errors import MetricError, MissingResultsError

__all__ = [
    "Floats",
    "Value",
    "as_value",
    "floats",
    "images",
    "probabilities",
    "shares",
    "whole",
    "whole_numbers",
]

Floats: TypeAlias = NDArray[np.float64]

Value: TypeAlias = Any
"""A float; an array if what came has leading axes (resamples, say), with just these axes."""

_SLACK = 1e-9
"""How far a share may lie outside [0, 1]: sums in another order end a few bits off."""

_SUM_SLACK = 1e-3
"""How far a row of probabilities may be from adding up to 1: float16 has three digits."""


def as_value(array: NDArray[Any]) -> Value:
    """A float if the array is a single number."""
    return float(array) if np.ndim(array) == 0 else array


def floats(values: ArrayLike, what: str) -> Floats:
    """Numbers, none of them NaN, and at least one."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise MetricError(
            f"{what} cannot be read as numbers ({error}); accepted is a number or an array of numbers"
        ) from None
    if array.size == 0:
        raise MissingResultsError(f"{what} came empty, shape {array.shape}: evaluate some images first")
    if np.isnan(array).any():
        raise MetricError(
            f"{what} came with {np.isnan(array).sum()} NaN among {array.size} values; NaN does not stand "
            "for a result that is absent: leave it out, or evaluate it"
        )
    return array


def shares(values: ArrayLike, what: str) -> Floats:
    """Numbers in [0, 1]."""
    array = floats(values, what)
    low, high = array.min(), array.max()
    if low < -_SLACK or high > 1 + _SLACK:
        hint = "; divide percent by 100" if low >= 0 and high <= 100 else ""
        raise MetricError(
            f"{what} came with values from {low:g} to {high:g}; accepted are shares in [0, 1]{hint}"
        )
    return array


def whole_numbers(values: ArrayLike, what: str) -> NDArray[Any]:
    """Classes: an array of an integer type."""
    array = np.asarray(values)
    if array.size == 0:
        raise MissingResultsError(f"{what} came empty, shape {array.shape}: evaluate some images first")
    if array.dtype.kind not in "iu":
        raise MetricError(f"{what} came with dtype {array.dtype}; accepted are classes as whole numbers")
    return array


def images(count: int, what: str, array: NDArray[Any], *, axes: int) -> None:
    """An array of `axes` axes, the first as long as there are images."""
    if array.ndim != axes or len(array) != count:
        shape = "(images,)" if axes == 1 else "(images, classes)"
        raise MetricError(f"{what} of shape {array.shape} came for {count} images; accepted is {shape}")


def whole(value: int, what: str, *, least: int = 1) -> int:
    """An option that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise OptionError(f"{what}={value!r} came; accepted is a whole number from {least}")
    return int(value)


def probabilities(p: ArrayLike) -> Floats:
    """Distributions over classes, one a row."""
    array = floats(p, "p")
    if array.ndim != 2:
        raise MetricError(f"p of shape {array.shape} came; accepted is (images, classes)")
    sums = array.sum(axis=1)
    if array.min() < -_SLACK or np.abs(sums - 1).max() > _SUM_SLACK:
        raise MetricError(
            f"p came with values from {array.min():g} to {array.max():g} and rows that add up to "
            f"{sums.min():g} to {sums.max():g}; accepted are probabilities, which add up to 1: take the "
            "softmax of logits first"
        )
    return np.clip(array, 0, None)

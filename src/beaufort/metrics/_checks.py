"""Validation of the arrays that metrics take."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from beaufort._core.errors import BeaufortError

Floats: TypeAlias = NDArray[np.float64]

Value: TypeAlias = Any
"""A float, or an array of the leading axes of the input, such as resamples."""


class MetricError(BeaufortError, ValueError):
    """Values from which a metric cannot be computed."""


class MissingResultsError(BeaufortError, LookupError):
    """Missing results that a metric requires."""


_SLACK = 1e-9
"""Tolerance for proportions outside of [0, 1], because of rounding."""

_SUM_SLACK = 1e-3
"""Tolerance for the sum of probabilities; float16 has three digits."""


def as_value(array: NDArray[Any]) -> Value:
    """Return a float if the array is a single number."""
    return float(array) if np.ndim(array) == 0 else array


def floats(values: ArrayLike, what: str) -> Floats:
    """Return a non-empty array without NaN."""
    array = _not_empty(np.asarray(values, np.float64), what)
    if np.isnan(array).any():
        raise MetricError(
            f"{what} must not contain NaN, got {np.isnan(array).sum()} in {array.size} values; omit missing "
            "results, or evaluate them"
        )
    return array


def fractions(values: ArrayLike, what: str) -> Floats:
    """Return an array of numbers in [0, 1]."""
    array = floats(values, what)
    low, high = array.min(), array.max()
    if low < -_SLACK or high > 1 + _SLACK:
        hint = "; divide percent by 100" if low >= 0 and high <= 100 else ""
        raise MetricError(f"{what} must be in [0, 1], got values from {low:g} to {high:g}{hint}")
    return array


def class_indices(values: ArrayLike, what: str) -> NDArray[Any]:
    """Return an array of class indices, of an integer type."""
    array = _not_empty(np.asarray(values), what)
    if array.dtype.kind not in "iu":
        raise MetricError(f"{what} must be integers (class indices), got dtype {array.dtype}")
    return array


def _not_empty(array: NDArray[Any], what: str) -> NDArray[Any]:
    if array.size == 0:
        raise MissingResultsError(
            f"{what} must not be empty, got shape {array.shape}; evaluate some images first"
        )
    return array


def validate_images(count: int, what: str, array: NDArray[Any], *, axes: int) -> None:
    """Raise an error unless an array has `axes` axes, the first one of images."""
    if array.ndim != axes or len(array) != count:
        shape = f"({count},)" if axes == 1 else f"({count}, classes)"
        raise MetricError(f"{what} must have shape {shape}, got {array.shape}")


def probabilities(p: ArrayLike) -> Floats:
    """Return probabilities, one distribution per row."""
    array = floats(p, "p")
    if array.ndim != 2:
        raise MetricError(f"p must have shape (images, classes), got {array.shape}")
    sums = array.sum(axis=1)
    if array.min() < -_SLACK or np.abs(sums - 1).max() > _SUM_SLACK:
        raise MetricError(
            f"rows of p must be probabilities that sum to 1, got values from {array.min():g} to "
            f"{array.max():g} and sums from {sums.min():g} to {sums.max():g}; take the softmax of logits "
            "first"
        )
    return np.clip(array, 0, None)

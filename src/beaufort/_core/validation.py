"""Checks of values that users pass, made once, where they enter.

Each helper returns the value in its plain type, so that a call site reads `count = validate_count("images",
count)`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from numbers import Integral, Real
from typing import Any

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import unknown


def validate_integer(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """Return an integer within bounds; `True` is not an integer.

    >>> validate_integer("tiles", 0, 1, 64)
    Traceback (most recent call last):
    beaufort.OptionError: tiles must be an integer from 1 to 64, got 0
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not _within(value, low, high):
        raise OptionError(f"{name} must be an integer{_bounds(low, high)}, got {value!r:.60}")
    return int(value)


def validate_count(name: str, value: Any) -> int:
    """Return a positive integer.

    >>> validate_count("resamples", 2.5)
    Traceback (most recent call last):
    beaufort.OptionError: resamples must be a positive integer, got 2.5
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise OptionError(f"{name} must be a positive integer, got {value!r:.60}")
    return int(value)


def validate_number(name: str, value: Any, low: float | None = None, high: float | None = None) -> float:
    """Return a finite number within bounds.

    >>> validate_number("clip", 0, 0.1, 40)
    Traceback (most recent call last):
    beaufort.OptionError: clip must be a number from 0.1 to 40, got 0
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, Real)
        or not math.isfinite(value)
        or not _within(value, low, high)
    ):
        raise OptionError(f"{name} must be a number{_bounds(low, high)}, got {value!r:.60}")
    return float(value)


def validate_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return one of several names; the error suggests the nearest.

    >>> validate_choice("format", "jpg", ["png", "jpeg"])
    Traceback (most recent call last):
    beaufort.UnknownNameError: unknown format 'jpg'; did you mean 'jpeg' or 'png'?
    """
    if not isinstance(value, str) or value not in choices:
        raise UnknownNameError(unknown(name, value, dict.fromkeys(choices)))
    return value


def validate_unique(name: str, values: Iterable[str]) -> list[str]:
    """Return names of which each may occur once."""
    found = list(values)
    if repeated := next((one for place, one in enumerate(found) if one in found[:place]), None):
        raise OptionError(f"{name} must be unique, got {repeated!r} more than once")
    return found


def _within(value: Any, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _bounds(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return ""
    if high is None:
        return f" of at least {low:g}"
    return f" of at most {high:g}" if low is None else f" from {low:g} to {high:g}"

"""Validation of arguments at the public boundary, shared by all packages.

Each helper returns the value as a plain Python type: `count = validate_count("images", count)`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from beaufort._core.errors import BeaufortError, OptionError, UnknownNameError
from beaufort._core.registry import unknown_message


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


def validate_positive(name: str, value: Any, high: float | None = None) -> float:
    """Return a finite number above 0."""
    if validate_number(name, value, 0, high) == 0:
        raise OptionError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def validate_fraction(name: str, value: Any) -> float:
    """Return a number above 0 and below 1.

    >>> validate_fraction("level", 95)
    Traceback (most recent call last):
    beaufort.OptionError: level must be a number between 0 and 1 (exclusive), got 95
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise OptionError(f"{name} must be a number between 0 and 1 (exclusive), got {value!r:.60}")
    return float(value)


def validate_flag(name: str, value: Any) -> bool:
    """Return `True` or `False`; 0 and 1 are rejected."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} must be True or False, got {value!r:.60}")
    return value


def validate_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return one of several names; the error suggests the nearest.

    >>> validate_choice("format", "jpg", ["png", "jpeg"])
    Traceback (most recent call last):
    beaufort.UnknownNameError: unknown format 'jpg'; did you mean 'jpeg' or 'png'?
    """
    if not isinstance(value, str) or value not in choices:
        raise UnknownNameError(unknown_message(name, value, choices))
    return value


def validate_unique(name: str, values: Iterable[str], error: type[BeaufortError] = OptionError) -> list[str]:
    """Return names without duplicates."""
    found = list(values)
    if repeated := next((one for place, one in enumerate(found) if one in found[:place]), None):
        raise error(f"{name} must be unique, got {repeated!r} more than once")
    return found


def validate_directory(name: str, path: Path | str, error: type[BeaufortError] = OptionError) -> Path:
    """Return the path of an existing directory."""
    path = Path(path)
    if not path.is_dir():
        raise error(f"{name} must be a directory: {path}" if path.exists() else f"{name} not found: {path}")
    return path


def validate_file(name: str, path: Path | str, error: type[BeaufortError] = OptionError) -> Path:
    """Return the path of an existing file."""
    path = Path(path)
    if not path.is_file():
        raise error(f"{name} must be a file: {path}" if path.exists() else f"{name} not found: {path}")
    return path


def validate_output_directory(path: Path | str, error: type[BeaufortError] = OptionError) -> Path:
    """Return the path of a directory that exists or can be created; a file has not taken its name."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise error(f"output must be a directory, got the file {path}")
    return path


def _within(value: Any, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _bounds(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return ""
    if high is None:
        return f" of at least {low:g}"
    return f" of at most {high:g}" if low is None else f" from {low:g} to {high:g}"

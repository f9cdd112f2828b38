"""Every error that Beaufort raises on purpose, and its warning.

All share one base, so that a caller can catch the family; each also is the built-in error that a
caller would expect. An error's text keeps no secrets: it is shown, logged and written to reports.
`check_number` and `checked_count` raise the one that is raised most.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from beaufort.sanitize import without_secrets

__all__ = [
    "AssetError",
    "BeaufortError",
    "ImageFileError",
    "ImageTypeError",
    "ImageValueError",
    "MissingExtraError",
    "OptionError",
    "RenderError",
    "SizeWarning",
    "UnknownNameError",
    "check_number",
    "checked_count",
]


class BeaufortError(Exception):
    """Anything that went wrong and that a person can do something about."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_secrets(part) if isinstance(part, str) else part for part in args))


class UnknownNameError(BeaufortError, KeyError):
    """A name that nothing is registered under."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the message in quotes


class OptionError(BeaufortError, ValueError):
    """An option with an invalid value."""


class ImageTypeError(BeaufortError, TypeError):
    """Something that is not an image of a supported type."""


class ImageValueError(BeaufortError, ValueError):
    """An image of a supported type with an invalid size or shape."""


class RenderError(BeaufortError, TypeError):
    """A corruption whose render gives back something that is no batch of images."""


class ImageFileError(BeaufortError, OSError):
    """A file that cannot be read, or should not be, as the image it claims to be."""


class AssetError(BeaufortError, OSError):
    """A file of the catalog that no source gave, or that is not the one expected."""

    asset: str = ""
    """Its name in the catalog, where that is known."""


class SizeWarning(UserWarning):
    """Images of a size that the published constants were not chosen for; given once in a process."""


class MissingExtraError(BeaufortError, ImportError):
    """A package that this function needs and the core does not."""


def check_number(name: str, value: Any, low: float, high: float, *, whole: bool = False) -> None:
    """Refuse an option that is not a number within bounds.

    >>> check_number("tiles", 0, 1, 64, whole=True)
    Traceback (most recent call last):
    beaufort.errors.OptionError: tiles must be an integer from 1 to 64, got 0
    """
    kind = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        what = "an integer" if whole else "a number"
        raise OptionError(f"{name} must be {what} from {low:g} to {high:g}, got {value!r:.60}")


def checked_count(name: str, value: Any) -> int:
    """An option that counts something, as an `int`; an error that names it unless it is a positive integer.

    >>> checked_count("resamples", 2.5)
    Traceback (most recent call last):
    beaufort.errors.OptionError: resamples must be a positive integer, got 2.5
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise OptionError(f"{name} must be a positive integer, got {value!r:.60}")
    return int(value)

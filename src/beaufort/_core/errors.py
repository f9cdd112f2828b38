"""Errors and warnings.

All errors share one base class, and each is also the built-in error that a caller would expect. Secrets are
removed from messages, because messages are shown, logged and written to reports.
"""

from __future__ import annotations

from beaufort._core.text import without_secrets


class BeaufortError(Exception):
    """Base class of all errors that Beaufort raises."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_secrets(part) if isinstance(part, str) else part for part in args))


class UnknownNameError(BeaufortError, KeyError):
    """A name that is not registered."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the message in quotes


class OptionError(BeaufortError, ValueError):
    """An option with an invalid value."""


class ImageTypeError(BeaufortError, TypeError):
    """Something that is not an image of a supported type."""


class ImageValueError(BeaufortError, ValueError):
    """An image of a supported type with an invalid size or shape."""


class RenderError(BeaufortError, TypeError):
    """A corruption whose function does not return a batch of images."""


class ImageFileError(BeaufortError, OSError):
    """An image file that cannot or must not be decoded."""


class AssetError(BeaufortError, OSError):
    """A file of the catalog that could not be downloaded or has a wrong checksum."""

    asset: str = ""
    """Name of the file in the catalog, if known."""


class SizeWarning(UserWarning):
    """Images of a size that the published constants were not chosen for; issued once per process."""


class MissingExtraError(BeaufortError, ImportError):
    """An optional package that is not installed."""


for _class in [value for value in globals().values() if isinstance(value, type)]:
    _class.__module__ = "beaufort"  # the public module, shown in tracebacks

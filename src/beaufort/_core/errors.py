"""Every error that Beaufort raises on purpose, and its warning.

All share one base, so that a caller can catch the family; each also is the built-in error that a
caller would expect. An error's text keeps no secrets: it is shown, logged and written to reports.
"""

from __future__ import annotations

from beaufort._core.text import without_secrets


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


for _class in [value for value in globals().values() if isinstance(value, type)]:
    _class.__module__ = "beaufort"  # where users import them from, and what a traceback shows

"""What can be wrong with labels."""

from __future__ import annotations

from beaufort.errors import OptionError

__all__ = ["LabelError"]


class LabelError(OptionError):
    """Labels that cannot be brought together with the outputs of a model."""

"""What can be wrong with labels."""

from __future__ import annotations

from beaufort.errors import BeaufortError

__all__ = ["LabelError"]


class LabelError(BeaufortError, ValueError):
    """Labels that cannot be brought together with the outputs of a model."""

"""What metrics refuse."""

from __future__ import annotations

from beaufort.errors import BeaufortError

__all__ = ["MetricError", "MissingResultsError"]


class MetricError(BeaufortError, ValueError):
    """Numbers that a metric cannot be made of."""


class MissingResultsError(BeaufortError, LookupError):
    """Results that a metric needs and that are not there."""

"""What metrics refuse."""

from __future__ import annotations

from beaufort._core.errors import BeaufortError


class MetricError(BeaufortError, ValueError):
    """Numbers that a metric cannot be made of."""


class MissingResultsError(BeaufortError, LookupError):
    """Results that a metric needs and that are not there."""

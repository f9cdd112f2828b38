"""What can be wrong with an attack."""

from __future__ import annotations

from beaufort._core.errors import BeaufortError


class AttackError(BeaufortError, RuntimeError):
    """An attack on a model that cannot be attacked, or that gave something other than images."""

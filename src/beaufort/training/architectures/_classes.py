"""Networks that are made for ten classes, and for no other number."""

from __future__ import annotations

from beaufort._core.errors import OptionError


def ten_classes(network: str, classes: int) -> None:
    """Refuse data with another number of classes, before a training that nothing could evaluate."""
    if classes != 10:
        raise OptionError(f"data for the network {network!r} must have 10 classes, got {classes}")

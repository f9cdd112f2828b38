"""The operations that corruptions are written in, and the backends that have them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

__all__ = ["Ops", "cpu_ops"]

Ops = Any


@lru_cache(maxsize=1)
def cpu_ops() -> Ops:
    """The CPU backend, imported when first needed: Numba and OpenCV take a moment."""
    from beaufort.ops import cpu

    return cpu

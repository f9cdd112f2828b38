"""Sweeps in which pixels take the place of others."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Field, Images

__all__ = ["GlassBlurOps"]


class GlassBlurOps(Protocol):
    """Sweeps in which pixels take the place of others."""

    def copy_sweeps(self, images: Images, offsets: Field, distance: int) -> Images:
        """Sweep over the pixels from the last to the first, each taking the value of one near it."""

    def swap_sweeps(self, images: Images, gates: Field, offsets: Field, distance: int) -> Images:
        """As `copy_sweeps`, but a true swap, and only where the gate is open."""

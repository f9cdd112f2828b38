"""Brightness, contrast and saturation."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Images

__all__ = ["ColorOps"]


class ColorOps(Protocol):
    """Brightness, contrast and saturation."""

    def brighten(self, images: Images, amount: float) -> Images:
        """V ← clip(V + c) in HSV, which scales R, G and B by V'/V; black becomes grey."""

    def lower_contrast(self, images: Images, factor: float, *, nearest: bool = False) -> Images:
        """(x - μ)·c + μ with μ the mean of the channel."""

    def saturate_colors(self, images: Images, gain: float, lift: float) -> Images:
        """S ← clip(a·S + b) in HSV: R, G, B ← V - (V - R, G, B)·S'/S; greys have hue 0, red."""

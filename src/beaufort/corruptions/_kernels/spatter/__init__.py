"""Drops of water and mud, and paint in their shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from beaufort._core.arrays import Field, Images

__all__ = ["SpatterOps"]


class SpatterOps(Protocol):
    """Drops of water and mud, and paint in their shape."""

    def mud_spots(
        self, normals: Field, mean: float, spread: float, sigma: float, threshold: float, rim: float
    ) -> Field:
        """How much mud covers each pixel, 0 or 0.8 to 1, float32: noise above a threshold, rounded off."""

    def paint(
        self, images: Images, masks: Field, color: tuple[float, ...], *, cover: bool, nearest: bool = False
    ) -> Images:
        """x + m·color, or x·(1 - m) + m·color where the paint is to `cover`; color in 0…255."""

    def run_down(self, layers: Field, shares: Mapping[int, float]) -> Field:
        """Float64 layers in which each row is made of shares of those so many rows above; nothing outside."""

    def water_drops(
        self, normals: Field, mean: float, spread: float, sigma: float, threshold: float, strength: float
    ) -> Field:
        """How much light each pixel of water adds, float32: drops with a bright and a dark rim."""

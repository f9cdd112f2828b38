"""Pixels taken from elsewhere: affine maps, displacements, shifts."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Array, Field, Images

__all__ = ["WarpsOps"]


class WarpsOps(Protocol):
    """Pixels taken from elsewhere: affine maps, displacements, shifts."""

    def affine(self, images: Images, matrices: Array, *, border: str) -> Field:
        """Float32 bilinear samples (0…255): pixel (x, y) comes from matrix · (x, y, 1)."""

    def displace(self, images: Field, right: Field, down: Field, *, nearest: bool = False) -> Images:
        """Bilinear samples of float images at (x + right, y + down); outside, the image mirrored."""

    def displace_zero(self, images: Field, right: Field, down: Field) -> Images:
        """As `displace`, but black wherever the sample lies outside; rounded."""

    def shift(self, images: Images, moves: Array) -> Images:
        """Each image moved by whole pixels: sampled at (x + right, y + down), `(n, 2)`; black outside."""

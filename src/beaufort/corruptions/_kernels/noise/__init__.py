"""Noise: added, multiplied, in place of values."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Field, Images

__all__ = ["NoiseOps"]


class NoiseOps(Protocol):
    """Noise: added, multiplied, in place of values."""

    def add_field(self, images: Images, field: Field, *, nearest: bool = False) -> Images:
        """x + f, one field value (0…255) a pixel, the same for all channels."""

    def add_noise(self, images: Images, noise: Field, sigma: float, *, nearest: bool = False) -> Images:
        """x + σ·n, σ in units of the whole range."""

    def excess(self, counts: Field, rate: float, images: Images) -> Field:
        """By how much counts / rate is more than x / 255, float32."""

    def multiply_noise(self, images: Images, noise: Field, sigma: float, *, nearest: bool = False) -> Images:
        """x + x·σ·n."""

    def replace(self, images: Images, hits: Field) -> Images:
        """Keep the value where the hit is 0; black where it is 1, white where it is 2."""

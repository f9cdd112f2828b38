"""Fractals, and the haze that is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from beaufort._core.arrays import Field, Images

if TYPE_CHECKING:
    from beaufort.corruptions.rng import Undrawn

__all__ = ["FogOps"]


class FogOps(Protocol):
    """Fractals, and the haze that is made of them."""

    def haze(self, images: Images, fields: Field, amount: float, *, nearest: bool = False) -> Images:
        """(x + a·P)·M / (M + a) with P in [0, 1] and M the largest value of the image."""

    def plasma(self, noise: Field | Undrawn, side: int, decay: float, height: int, width: int) -> Field:
        """Diamond-square fractals of `side` = 2^k, scaled to [0, 1] and cropped, float32."""

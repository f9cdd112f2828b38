"""Gaussian filters: of images, and of fields."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Field, Images

__all__ = ["GaussianBlurOps"]


class GaussianBlurOps(Protocol):
    """Gaussian filters: of images, and of fields."""

    def gaussian(
        self, images: Images, sigma: float, *, horizontal: bool = True, nearest: bool = False
    ) -> Images:
        """Gaussian blur, cut at 4σ, the edge repeated outside; only down the columns if not `horizontal`."""

    def smooth(
        self,
        fields: Field,
        sigma: float,
        *,
        truncate: float = 4.0,
        border: str = "nearest",
        gain: float = 1.0,
    ) -> Field:
        """Gaussian smoothing of float fields `(n, h, w)`, then times a gain; the dtype is kept."""

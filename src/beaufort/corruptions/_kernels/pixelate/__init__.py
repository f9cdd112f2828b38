"""Cells that show one value each."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Images

__all__ = ["PixelateOps"]


class PixelateOps(Protocol):
    """Cells that show one value each."""

    def pixel_cells(self, images: Images, rows: int, columns: int) -> Images:
        """Average into rows × columns cells and show each cell flat, as PIL's BOX filter does."""

    def soft_cells(self, images: Images, rows: float, columns: float, softness: float) -> Images:
        """Average into cells whose edges may cut pixels; a pixel shows the cells by its area in each.

        At softness 1 all cells have one size; at 0 their edges are those of whole pixels.
        """

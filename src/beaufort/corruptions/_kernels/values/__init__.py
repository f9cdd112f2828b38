"""What many corruptions need: look-ups, mixtures, parts of arrays, the way back to 8 bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, Field, Images

__all__ = ["ValuesOps"]


class ValuesOps(Protocol):
    """What many corruptions need: look-ups, mixtures, parts of arrays, the way back to 8 bit."""

    def look_up(self, values: Field, table: Bytes) -> Images:
        """The table's entry for each whole number, and its last entry for all beyond."""

    def mix(self, images: Sequence[Images], weights: Sequence[float]) -> Images:
        """The mean of several versions of the same images, rounded; weights are multiples of 1/256."""

    def pick(self, fields: Field, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Field:
        """Some rows and columns of every field `(n, h, w, …)`, by their numbers."""

    def to_bytes(self, values: Field, *, nearest: bool = False) -> Images:
        """Clip 0…255 values and cut the fraction off, or round."""

"""Formulas over the pixels of a picture: what NumPy calls universal functions, on both backends."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from beaufort._core.arrays import Array, Images

__all__ = ["MathsOps"]


class MathsOps(Protocol):
    """Formulas over the pixels of a picture, in double precision unless said otherwise.

    Both kinds of numbers, arrays and tensors, have Python's operators and can be indexed by whole ones; what
    comes back here is either, as the images are.
    """

    def grid(self, images: Images) -> tuple[Any, Any]:
        """The row and the column of each pixel, `(1, h, 1)` and `(1, 1, w)`."""

    def lift(self, values: Array, images: Images) -> Any:
        """Numbers of the host beside the images."""

    def real(self, images: Any, dtype: type = np.float64) -> Any:
        """Images or other numbers as real numbers, float64 or float32; a new array."""

    def whole(self, values: Any) -> Any:
        """The whole part of each number, towards zero, as int64."""

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        """One or the other for each place."""

    def clip(self, values: Any, low: float, high: float) -> Any:
        """No less than `low`, no more than `high`."""

    def floor(self, values: Any) -> Any:
        """The next whole number below."""

    def rint(self, values: Any) -> Any:
        """The nearest whole number, halves to the even one."""

    def sqrt(self, values: Any) -> Any:
        """Square root."""

    def power(self, values: Any, exponent: float) -> Any:
        """A power of numbers that are not negative."""

    def sin(self, values: Any) -> Any:
        """Sine."""

    def cos(self, values: Any) -> Any:
        """Cosine."""

    def arcsin(self, values: Any) -> Any:
        """Inverse sine."""

    def arccos(self, values: Any) -> Any:
        """Inverse cosine."""

    def arctan2(self, y: Any, x: Any) -> Any:
        """The angle of the point (x, y)."""

    def synthesize(self, amplitude: Any, phase: Any) -> Any:
        """The real part of the waves of a spectrum whose zero frequency is in the middle, `(n, h, w)`."""

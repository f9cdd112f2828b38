"""Formulas over the pixels of a picture, with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from beaufort._core.arrays import Array, Bytes


def grid(images: Bytes) -> tuple[Any, Any]:
    """The row and the column of each pixel, `(1, h, 1)` and `(1, 1, w)`."""
    height, width = images.shape[1:3]
    return np.arange(height, dtype=np.float64)[None, :, None], np.arange(width, dtype=np.float64)[None, None]


def lift(values: Array, images: Bytes) -> Any:
    """Numbers of the host beside the images: they are there."""
    return values


def real(images: Array, dtype: type = np.float64) -> Any:
    """Images or other numbers as real numbers, float64 or float32; a new array."""
    return images.astype(dtype)


def whole(values: Array) -> Any:
    """The whole part of each number, towards zero, as int64."""
    return values.astype(np.int64)


def where(condition: Array, yes: Any, no: Any) -> Any:
    """One or the other for each place."""
    return np.where(condition, yes, no)


def clip(values: Array, low: float, high: float) -> Any:
    """No less than `low`, no more than `high`."""
    return np.clip(values, low, high)


def floor(values: Array) -> Any:
    """The next whole number below."""
    return np.floor(values)


def rint(values: Array) -> Any:
    """The nearest whole number, halves to the even one."""
    return np.rint(values)


def sqrt(values: Array) -> Any:
    """Square root."""
    return np.sqrt(values)


def power(values: Array, exponent: float) -> Any:
    """A power of numbers that are not negative."""
    return np.power(values, exponent)


def sin(values: Array) -> Any:
    """Sine."""
    return np.sin(values)


def cos(values: Array) -> Any:
    """Cosine."""
    return np.cos(values)


def arcsin(values: Array) -> Any:
    """Inverse sine."""
    return np.arcsin(values)


def arccos(values: Array) -> Any:
    """Inverse cosine."""
    return np.arccos(values)


def arctan2(y: Array, x: Array) -> Any:
    """The angle of the point (x, y)."""
    return np.arctan2(y, x)


def synthesize(amplitude: Array, phase: Array) -> Any:
    """The real part of the waves of a spectrum whose zero frequency is in the middle, `(n, h, w)`."""
    spectrum = amplitude * np.exp(1j * phase)
    return np.fft.ifft2(np.fft.ifftshift(spectrum, axes=(-2, -1))).real

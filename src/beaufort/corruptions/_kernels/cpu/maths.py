"""Formulas over the pixels of a picture, with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from beaufort._core.arrays import Array, Bytes


def grid(images: Bytes) -> tuple[Any, Any]:
    height, width = images.shape[1:3]
    return np.arange(height, dtype=np.float64)[None, :, None], np.arange(width, dtype=np.float64)[None, None]


def lift(values: Array, images: Bytes) -> Any:
    return values


def real(images: Array, dtype: type = np.float64) -> Any:
    return images.astype(dtype)


def whole(values: Array) -> Any:
    return values.astype(np.int64)


def where(condition: Array, yes: Any, no: Any) -> Any:
    return np.where(condition, yes, no)


def clip(values: Array, low: float, high: float) -> Any:
    return np.clip(values, low, high)


def floor(values: Array) -> Any:
    return np.floor(values)


def rint(values: Array) -> Any:
    return np.rint(values)


def sqrt(values: Array) -> Any:
    return np.sqrt(values)


def power(values: Array, exponent: float) -> Any:
    return np.power(values, exponent)


def sin(values: Array) -> Any:
    return np.sin(values)


def cos(values: Array) -> Any:
    return np.cos(values)


def arcsin(values: Array) -> Any:
    return np.arcsin(values)


def arccos(values: Array) -> Any:
    return np.arccos(values)


def arctan2(y: Array, x: Array) -> Any:
    return np.arctan2(y, x)


def synthesize(amplitude: Array, phase: Array) -> Any:
    spectrum = amplitude * np.exp(1j * phase)
    return np.fft.ifft2(np.fft.ifftshift(spectrum, axes=(-2, -1))).real

"""Formulas over the pixels of an image, with NumPy."""

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


where, clip = np.where, np.clip
floor, rint, sqrt, power = np.floor, np.rint, np.sqrt, np.power
sin, cos, arcsin, arccos, arctan2 = np.sin, np.cos, np.arcsin, np.arccos, np.arctan2


def synthesize(amplitude: Array, phase: Array) -> Any:
    spectrum = amplitude * np.exp(1j * phase)
    return np.fft.ifft2(np.fft.ifftshift(spectrum, axes=(-2, -1))).real

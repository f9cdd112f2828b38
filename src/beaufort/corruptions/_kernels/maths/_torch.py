"""Formulas over the pixels of a picture, in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside


def grid(images: Tensor) -> tuple[Any, Any]:
    """The row and the column of each pixel, `(1, h, 1)` and `(1, 1, w)`."""
    height, width = images.shape[1:3]
    rows = torch.arange(height, dtype=torch.float64, device=images.device)
    columns = torch.arange(width, dtype=torch.float64, device=images.device)
    return rows[None, :, None], columns[None, None]


def lift(values: NDArray[Any], images: Tensor) -> Any:
    """Numbers of the host beside the images."""
    return beside(values, images)


def real(images: Tensor, dtype: type = np.float64) -> Any:
    """Images or other numbers as real numbers, float64 or float32; a new tensor."""
    return images.to(torch.float64 if dtype is np.float64 else torch.float32, copy=True)


def whole(values: Tensor) -> Any:
    """The whole part of each number, towards zero, as int64."""
    return values.long()


def where(condition: Tensor, yes: Any, no: Any) -> Any:
    """One or the other for each place."""
    return torch.where(condition, yes, no)


def clip(values: Tensor, low: float, high: float) -> Any:
    """No less than `low`, no more than `high`."""
    return values.clamp(low, high)


def floor(values: Tensor) -> Any:
    """The next whole number below."""
    return values.floor()


def rint(values: Tensor) -> Any:
    """The nearest whole number, halves to the even one."""
    return values.round()


def sqrt(values: Tensor) -> Any:
    """Square root."""
    return values.sqrt()


def power(values: Tensor, exponent: float) -> Any:
    """A power of numbers that are not negative."""
    return values.pow(exponent)


def sin(values: Tensor) -> Any:
    """Sine."""
    return values.sin()


def cos(values: Tensor) -> Any:
    """Cosine."""
    return values.cos()


def arcsin(values: Tensor) -> Any:
    """Inverse sine."""
    return values.arcsin()


def arccos(values: Tensor) -> Any:
    """Inverse cosine."""
    return values.arccos()


def arctan2(y: Tensor, x: Tensor) -> Any:
    """The angle of the point (x, y)."""
    return torch.atan2(y, x)


def synthesize(amplitude: Tensor, phase: Tensor) -> Any:
    """The real part of the waves of a spectrum whose zero frequency is in the middle, `(n, h, w)`."""
    spectrum = torch.polar(amplitude.expand_as(phase), phase)
    return torch.fft.ifft2(torch.fft.ifftshift(spectrum, dim=(-2, -1))).real

"""Formulas over the pixels of a picture, in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside


def grid(images: Tensor) -> tuple[Any, Any]:
    height, width = images.shape[1:3]
    rows = torch.arange(height, dtype=torch.float64, device=images.device)
    columns = torch.arange(width, dtype=torch.float64, device=images.device)
    return rows[None, :, None], columns[None, None]


def lift(values: NDArray[Any], images: Tensor) -> Any:
    return beside(values, images)


def real(images: Tensor, dtype: type = np.float64) -> Any:
    return images.to(torch.float64 if dtype is np.float64 else torch.float32, copy=True)


def whole(values: Tensor) -> Any:
    return values.long()


def where(condition: Tensor, yes: Any, no: Any) -> Any:
    return torch.where(condition, yes, no)


def clip(values: Tensor, low: float, high: float) -> Any:
    return values.clamp(low, high)


def floor(values: Tensor) -> Any:
    return values.floor()


def rint(values: Tensor) -> Any:
    return values.round()


def sqrt(values: Tensor) -> Any:
    return values.sqrt()


def power(values: Tensor, exponent: float) -> Any:
    return values.pow(exponent)


def sin(values: Tensor) -> Any:
    return values.sin()


def cos(values: Tensor) -> Any:
    return values.cos()


def arcsin(values: Tensor) -> Any:
    return values.arcsin()


def arccos(values: Tensor) -> Any:
    return values.arccos()


def arctan2(y: Tensor, x: Tensor) -> Any:
    return torch.atan2(y, x)


def synthesize(amplitude: Tensor, phase: Tensor) -> Any:
    spectrum = torch.polar(amplitude.expand_as(phase), phase)
    return torch.fft.ifft2(torch.fft.ifftshift(spectrum, dim=(-2, -1))).real

"""Formulas over the pixels of an image, in torch."""

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


where, clip = torch.where, torch.clamp
floor, rint, sqrt, power = torch.floor, torch.round, torch.sqrt, torch.pow
sin, cos, arcsin, arccos, arctan2 = torch.sin, torch.cos, torch.arcsin, torch.arccos, torch.atan2


def synthesize(amplitude: Tensor, phase: Tensor) -> Any:
    spectrum = torch.polar(amplitude.expand_as(phase), phase)
    return torch.fft.ifft2(torch.fft.ifftshift(spectrum, dim=(-2, -1))).real

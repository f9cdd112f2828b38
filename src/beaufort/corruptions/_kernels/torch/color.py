"""Brightness, contrast and saturation in torch, rounded where Numba's kernels round."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from beaufort._core.device import constant, f32, fma
from beaufort.corruptions._kernels import triton_kernels
from beaufort.corruptions._kernels.cpu.color import brighter
from beaufort.corruptions._kernels.torch.values import look_up, to_bytes


def lower_contrast(images: Tensor, factor: float, *, nearest: bool = False) -> Tensor:
    if kernels := triton_kernels("color", images):
        exact = constant(np.array(factor), images.device)
        return kernels.lower_contrast(images, f32(factor), exact, nearest)
    mean = images.flatten(1, 2).sum(dim=1, dtype=torch.int64).double() / math.prod(images.shape[1:3])
    offset = (mean - mean * factor).float()
    return to_bytes(fma(images.float(), f32(factor), offset[:, None, None]), nearest=nearest)


def brighten(images: Tensor, amount: float) -> Tensor:
    after, ratios = brighter(amount)
    if images.shape[-1] == 1:
        return look_up(images, after.astype(np.uint8))
    ratio = constant(ratios, images.device)
    black = f32(after[0])
    if kernels := triton_kernels("color", images):
        return kernels.brighten(images, ratio, black)
    value = images.amax(dim=-1, keepdim=True)
    return torch.where(value == 0, black, images.float() * ratio[value.long()]).to(torch.uint8)


def saturate_colors(images: Tensor, gain: float, lift: float) -> Tensor:
    gain, lift = f32(gain), f32(lift)
    if kernels := triton_kernels("color", images):
        return kernels.saturate(images, gain, lift)
    colors = images.float()
    value = colors.amax(dim=-1, keepdim=True)
    spread = value - colors.amin(dim=-1, keepdim=True)
    inverse = value / spread
    ratio = torch.minimum(fma(inverse, lift, gain), inverse).clamp(min=0)
    vivid = fma(colors - value, ratio, value)
    gray = fma(value, -min(max(lift, 0.0), 1.0), value)
    flat = torch.cat([value, gray, gray], dim=-1)
    return to_bytes(torch.where(spread > 0, vivid, flat))

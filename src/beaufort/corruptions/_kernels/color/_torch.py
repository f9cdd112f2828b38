"""Brightness, contrast and saturation in torch, rounded where Numba's kernels round."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from beaufort._core.device import constant, f32, fma, use_kernels
from beaufort.corruptions._kernels.color._cpu import brighter
from beaufort.corruptions._kernels.values._torch import look_up, to_bytes


def _kernels() -> ModuleType:
    from beaufort.corruptions._kernels.color import _triton

    return _triton


def lower_contrast(images: Tensor, factor: float, *, nearest: bool = False) -> Tensor:
    """(x - μ)·c + μ with μ the mean of the channel."""
    if use_kernels(images):
        exact = constant(np.array(factor), images.device)
        return _kernels().lower_contrast(images, f32(factor), exact, nearest)
    mean = images.flatten(1, 2).sum(dim=1, dtype=torch.int64).double() / math.prod(images.shape[1:3])
    offset = (mean - mean * factor).float()
    return to_bytes(fma(images.float(), f32(factor), offset[:, None, None]), nearest=nearest)


def brighten(images: Tensor, amount: float) -> Tensor:
    """V ← clip(V + c) in HSV, which scales R, G and B by V'/V; black becomes grey."""
    after, ratios = brighter(amount)
    if images.shape[-1] == 1:
        return look_up(images, after.astype(np.uint8))
    ratio = constant(ratios, images.device)
    black = f32(after[0])
    if use_kernels(images):
        return _kernels().brighten(images, ratio, black)
    value = images.amax(dim=-1, keepdim=True)
    return torch.where(value == 0, black, images.float() * ratio[value.long()]).to(torch.uint8)


def saturate_colors(images: Tensor, gain: float, lift: float) -> Tensor:
    """S ← clip(a·S + b) in HSV: R, G, B ← V - (V - R, G, B)·S'/S; greys have hue 0, red."""
    gain, lift = f32(gain), f32(lift)
    if use_kernels(images):
        return _kernels().saturate(images, gain, lift)
    colors = images.float()
    value = colors.amax(dim=-1, keepdim=True)
    spread = value - colors.amin(dim=-1, keepdim=True)
    inverse = value / spread
    ratio = torch.minimum(fma(inverse, lift, gain), inverse).clamp(min=0)
    vivid = fma(colors - value, ratio, value)
    grey = fma(value, -min(max(lift, 0.0), 1.0), value)
    flat = torch.cat([value, grey, grey], dim=-1)
    return to_bytes(torch.where(spread > 0, vivid, flat))

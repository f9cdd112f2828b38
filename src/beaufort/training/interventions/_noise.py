"""Noise that is added to values in 0..1 while training."""

from __future__ import annotations

import torch
from torch import Tensor

from beaufort._core.errors import OptionError

KINDS = ("uniform", "gaussian")


def check_noise(kind: str, strength: float) -> None:
    """Refuse another kind, and a strength that is none."""
    if kind not in KINDS:
        raise OptionError(f"noise must be one of {', '.join(KINDS)}, got {kind!r:.60}")
    if isinstance(strength, bool) or not isinstance(strength, int | float) or not 0 < strength <= 1:
        raise OptionError(f"strength must be a number above 0 and up to 1, got {strength!r:.60}")


def with_noise(images: Tensor, kind: str, strength: float) -> Tensor:
    """The images with noise, cut at 0 and 1.

    Args:
        images: values in 0..1.
        kind: `uniform` between -strength and strength, or `gaussian` with that standard deviation.
        strength: in units of the values.
    """
    draw = torch.rand_like(images) * 2 - 1 if kind == "uniform" else torch.randn_like(images)
    return (images + strength * draw).clamp(0, 1)

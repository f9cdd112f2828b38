"""Noise augmentation: the loss is taken on images with noise, drawn anew at every step."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_choice, validate_number
from beaufort.training.interventions.base import (
    Intervention,
    TrainingContext,
    plain_loss,
)

KINDS = ("uniform", "gaussian")


def make(
    training: TrainingContext,
    *,
    noise: str = "uniform",
    strength: float = 0.05,
    clean: float = 0.0,
) -> Intervention:
    """Train on noisy images.

    Args:
        training: what it is part of.
        noise: `uniform` or `gaussian`.
        strength: the limit of uniform noise, the standard deviation of Gaussian; values are in 0..1.
        clean: the share of images that get none.
    """
    check_noise(noise, strength)
    if validate_number("clean", clean, 0, 1) == 1:
        raise OptionError("clean must be below 1, got 1")

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        noisy = with_noise(images, noise, strength)
        if clean:
            spared = torch.rand(len(images), 1, 1, 1, device=images.device) < clean
            noisy = torch.where(spared, images, noisy)
        return plain_loss(model, noisy, labels)

    return Intervention(loss=loss, constant=1)


def check_noise(kind: str, strength: float) -> None:
    """Validate the kind and the strength of noise."""
    validate_choice("noise", kind, KINDS)
    if validate_number("strength", strength, 0, 1) == 0:
        raise OptionError("strength must be above 0, got 0")


def with_noise(images: Tensor, kind: str, strength: float) -> Tensor:
    """The images with noise, cut at 0 and 1.

    Args:
        images: values in 0..1.
        kind: `uniform` between -strength and strength, or `gaussian` with that standard deviation.
        strength: in units of the values.
    """
    draw = torch.rand_like(images) * 2 - 1 if kind == "uniform" else torch.randn_like(images)
    return (images + strength * draw).clamp(0, 1)

"""Training on images with noise, drawn in each step."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_choice, validate_number, validate_positive
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
        training: context of the training run.
        noise: `uniform` or `gaussian`.
        strength: limit of uniform noise, standard deviation of Gaussian noise; values are in 0..1.
        clean: fraction of images without noise.
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
    validate_positive("strength", strength, 1)


def with_noise(images: Tensor, kind: str, strength: float) -> Tensor:
    """Return images with uniform or Gaussian noise, clipped to 0..1."""
    draw = torch.rand_like(images) * 2 - 1 if kind == "uniform" else torch.randn_like(images)
    return (images + strength * draw).clamp(0, 1)

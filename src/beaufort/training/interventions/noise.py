"""Noise augmentation: the loss is taken on images with noise, drawn anew at every step."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from beaufort._core.errors import OptionError
from beaufort.training.interventions._augment import augment, augmented_loss
from beaufort.training.interventions._intervention import Intervention, TrainingContext, plain_loss
from beaufort.training.interventions._noise import check_noise, with_noise


def make(
    training: TrainingContext,
    *,
    noise: str = "uniform",
    strength: float = 0.05,
    clean: float = 0.0,
    shift: int = 0,
    flip: bool = False,
) -> Intervention:
    """Train on noisy images.

    Args:
        training: what it is part of.
        noise: `uniform` or `gaussian`.
        strength: the limit of uniform noise, the standard deviation of Gaussian; values are in 0..1.
        clean: the share of images that get none.
        shift: as for plain training.
        flip: as for plain training.
    """
    check_noise(noise, strength)
    augmented_loss(shift, flip)  # says what is wrong with them
    if isinstance(clean, bool) or not isinstance(clean, int | float) or not 0 <= clean < 1:
        raise OptionError(f"clean must be a number from 0 up to and without 1, got {clean!r:.60}")

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        images = augment(images, shift, flip)
        noisy = with_noise(images, noise, strength)
        if clean:
            spared = torch.rand(len(images), 1, 1, 1, device=images.device) < clean
            noisy = torch.where(spared, images, noisy)
        return plain_loss(model, noisy, labels)

    return Intervention(loss=loss, constant=1)

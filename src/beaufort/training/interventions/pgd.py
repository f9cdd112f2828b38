"""Adversarial training on the worst images that PGD finds near the clean ones.

Madry et al. (2018), "Towards deep learning models resistant to adversarial attacks", arXiv:1706.06083. The
attack is that of `beaufort.suites.attacks` with a random start, and the last image counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from beaufort._core.validation import validate_integer, validate_positive
from beaufort.suites.attacks.pgd import PGD
from beaufort.training.interventions.base import Intervention, TrainingContext, plain_loss


def make(
    training: TrainingContext, *, epsilon: float = 0.3, step: float = 0.01, steps: int = 40
) -> Intervention:
    """Train on adversarial images only.

    Args:
        training: context of the training run.
        epsilon: largest change of a value in 0..1.
        step: change per step.
        steps: number of steps, from a random start.
    """
    validate_positive("epsilon", epsilon, 1)
    validate_positive("step", step, 1)
    validate_integer("steps", steps, 1, 100_000)

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        return plain_loss(model, perturbed(model, images, labels, epsilon, step, steps), labels)

    return Intervention(loss=loss, constant=1)


def perturbed(
    model: nn.Module, images: Tensor, labels: Tensor, epsilon: float, step: float, steps: int
) -> Tensor:
    """Return images within `epsilon` of `images` in the maximum norm that increase the loss."""
    attack = PGD(name="training", norm="linf", steps=steps, step=step / epsilon, keep_best=False)
    seed = int(torch.randint(2**62, ()))  # from the random numbers of this step
    words = np.arange(len(images), dtype=np.uint64)
    victim: Any = _Learner(model)
    found: Tensor = attack.perturb(victim, images, labels, radius=epsilon, words=words, seed=seed)
    return found


@dataclass(frozen=True)
class _Learner:
    """A network in training as the victim of an attack: its own loss, and no label space."""

    model: nn.Module

    def look(self, *_: Tensor) -> tuple[None, None, None]:
        """Return nothing: the labels are known, and the attack stops for no image."""
        return None, None, None

    def gradients(self, pixels: Tensor, labels: Tensor) -> tuple[None, None, Tensor]:
        """Return the gradient of the loss with respect to the images."""
        pixels = pixels.detach().requires_grad_()
        (slope,) = torch.autograd.grad(plain_loss(self.model, pixels, labels), pixels)
        return None, None, slope

"""Adversarial training: the loss is taken on the worst images that PGD finds near the clean ones.

Madry et al. (2018), "Towards deep learning models resistant to adversarial attacks", arXiv:1706.06083.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from beaufort.errors import OptionError
from beaufort.training.interventions._intervention import Intervention, plain_loss

__all__ = ["make", "perturbed"]


def make(
    *, recipe: Any, seed: int, device: str, epsilon: float = 0.3, step: float = 0.01, steps: int = 40
) -> Intervention:
    """Train on adversarial images only.

    Args:
        recipe: of the training.
        seed: of the training.
        device: of the training.
        epsilon: how far a value may be moved; the intensity range is [0, 1].
        step: how far one step moves it.
        steps: how many steps there are, from a random start.
    """
    if not 0 < epsilon <= 1 or step <= 0 or steps < 1:
        raise OptionError(
            f"epsilon must be in (0, 1], step above 0 and steps at least 1, got {epsilon}, {step}, {steps}"
        )

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        return plain_loss(model, perturbed(model, images, labels, epsilon, step, steps), labels)

    return Intervention(loss=loss)


def perturbed(
    model: nn.Module, images: Tensor, labels: Tensor, epsilon: float, step: float, steps: int
) -> Tensor:
    """Images within `epsilon` of these, in the maximum norm, that the network likes least."""
    low, high = (images - epsilon).clamp(0, 1), (images + epsilon).clamp(0, 1)
    moved = (images + torch.empty_like(images).uniform_(-epsilon, epsilon)).clamp(0, 1)
    for _ in range(steps):
        moved.requires_grad_(True)
        (slope,) = torch.autograd.grad(plain_loss(model, moved, labels), moved)
        moved = torch.minimum(torch.maximum(moved.detach() + step * slope.sign(), low), high)
    return moved

"""Plain training, optionally with mixup."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_number
from beaufort.training.interventions.base import Intervention, TrainingContext


def make(training: TrainingContext, *, mixup: float = 0.0) -> Intervention:
    """Train on the images as they are.

    Args:
        training: context of the training run.
        mixup: parameter of the Beta distribution of the proportion in which each image is blended with
            another of its batch; 0 turns mixup off. Zhang et al. (2018), arXiv:1710.09412, draw one
            proportion per batch.
    """
    validate_number("mixup", mixup, 0, 1000)
    if mixup == 0:
        return Intervention(constant=1)
    return Intervention(loss=partial(_mixed_loss, spread=mixup), constant=1)


def _mixed_loss(model: nn.Module, images: Tensor, labels: Tensor, spread: float) -> Tensor:
    """Return the cross entropy of blended images."""
    if hasattr(model, "loss"):
        raise OptionError("mixup cannot be used with a network that has its own loss")
    both = torch.full((), float(spread), device=images.device)
    portion = torch.distributions.Beta(both, both, validate_args=False).sample((len(images),))
    order = torch.randperm(len(images), device=images.device)
    logits = model(torch.lerp(images[order], images, portion[:, None, None, None])).float()
    first = functional.cross_entropy(logits, labels, reduction="none")
    second = functional.cross_entropy(logits, labels[order], reduction="none")
    return torch.lerp(second, first, portion).mean()

"""No intervention: images as they are, or blended with others by mixup."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_number
from beaufort.training.interventions.base import Intervention, TrainingContext


def make(training: TrainingContext, *, mixup: float = 0.0) -> Intervention:
    """Plain training.

    Args:
        training: what it is part of.
        mixup: blends each image with another of its batch, and the losses of both labels alike. The
            proportion is drawn for each image from a Beta distribution with both parameters of this value;
            Zhang et al. (2018), arXiv:1710.09412, draw one for the batch. 0 for none.
    """
    validate_number("mixup", mixup, 0, 1000)
    if mixup == 0:
        return Intervention(constant=1)
    return Intervention(loss=partial(_mixed_loss, spread=mixup), constant=1)


def _mixed_loss(model: nn.Module, images: Tensor, labels: Tensor, spread: float) -> Tensor:
    """Cross entropy of blended images."""
    if hasattr(model, "loss"):
        raise OptionError("mixup must be 0 for a network with a loss of its own")
    both = torch.full((), float(spread), device=images.device)
    share = torch.distributions.Beta(both, both, validate_args=False).sample((len(images),))
    order = torch.randperm(len(images), device=images.device)
    logits = model(torch.lerp(images[order], images, share[:, None, None, None])).float()
    first = functional.cross_entropy(logits, labels, reduction="none")
    second = functional.cross_entropy(logits, labels[order], reduction="none")
    return torch.lerp(second, first, share).mean()

"""No intervention: images as they are, or moved by a few pixels and mirrored as many papers do."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_number
from beaufort.training.interventions._augment import augment, augmented_loss
from beaufort.training.interventions._intervention import Intervention, TrainingContext, plain_loss


def make(
    training: TrainingContext, *, shift: int = 0, flip: bool = False, mixup: float = 0.0
) -> Intervention:
    """Plain training.

    Args:
        training: what it is part of.
        shift: pixels by which an image is moved at most, in each direction; what comes in is black. It is the
            same as a random crop of an image with so many black pixels around it.
        flip: whether every other image, at random, is mirrored left to right.
        mixup: blends each image with another of its batch, and the losses of both labels alike. The
            proportion is drawn for each image from a Beta distribution with both parameters of this value;
            Zhang et al. (2018), arXiv:1710.09412, draw one for the batch. 0 for none.
    """
    augmented_loss(shift, flip)  # says what is wrong with them
    validate_number("mixup", mixup, 0, 1000)
    if shift == 0 and not flip and mixup == 0:
        return Intervention(constant=1)

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        moved = augment(images, shift, flip)
        return _mixed_loss(model, moved, labels, mixup) if mixup else plain_loss(model, moved, labels)

    return Intervention(loss=loss, constant=1)


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

"""AugMix: images mixed with chains of simple operations, and answers that are to agree about them.

Hendrycks, Mu, Cubuk, Zoph, Gilmer & Lakshminarayanan (2020), "AugMix: a simple data processing method to
improve robustness and uncertainty", arXiv:1912.02781. None of the operations is one of the corruptions of
ImageNet-C and CIFAR-10-C; MNIST-C has turns, shears and shifts, too. Constants are those of the paper for
CIFAR.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.validation import validate_integer, validate_number
from beaufort.training.interventions import _operations
from beaufort.training.interventions._augment import augment, augmented_loss
from beaufort.training.interventions._intervention import Intervention, TrainingContext, needs_logits
from beaufort.training.interventions._mixing import Operation, mixed_chains


def make(
    training: TrainingContext,
    *,
    severity: float = 3.0,
    width: int = 3,
    depth: int = 3,
    weight: float = 12.0,
    shift: int = 0,
    flip: bool = False,
) -> Intervention:
    """Train with AugMix.

    Args:
        training: what it is part of; everything is done on its device.
        severity: the highest strength of an operation, from 0.1 to 10.
        width: how many chains are mixed.
        depth: the most operations of a chain.
        weight: of the Jensen-Shannon divergence of the answers to the clean image and two mixed ones; with 0,
            one mixed image takes the place of the clean one.
        shift: as for plain training, before anything else.
        flip: as for plain training.
    """
    augmented_loss(shift, flip)  # says what is wrong with them
    validate_number("severity", severity, 0.1, 10)
    validate_integer("width", width, 1, 16)
    validate_integer("depth", depth, 1, 16)
    validate_number("weight", weight, 0, 1e6)

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        needs_logits(model, "augmix")
        images = augment(images, shift, flip)
        mixed = [augmix(images, severity, width, depth) for _ in range(2 if weight else 1)]
        if not weight:
            return functional.cross_entropy(model(mixed[0]).float(), labels)
        answers = model(torch.cat([images, *mixed])).float().chunk(3)
        return functional.cross_entropy(answers[0], labels) + weight * divergence(*answers)

    return Intervention(loss=loss, constant=1)


def augmix(images: Tensor, severity: float = 3.0, width: int = 3, depth: int = 3) -> Tensor:
    """Mixed versions of images with values in 0..1."""
    share = torch.rand(len(images), 1, 1, 1, device=images.device)  # Beta(1, 1)
    chains = mixed_chains(images, operations(severity), width=width, depth=depth)
    return (1 - share) * images + share * chains


def operations(severity: float) -> list[Operation]:
    """The nine operations, each at a strength that every image draws anew."""
    return [
        _operations.autocontrast,
        _operations.equalize,
        *(
            lambda images, change=change: change(images, _level(images, severity))
            for change in (
                _operations.posterize,
                _operations.solarize,
                _operations.rotate,
                _operations.shear_x,
                _operations.shear_y,
                _operations.translate_x,
                _operations.translate_y,
            )
        ),
    ]


def _level(images: Tensor, severity: float) -> Tensor:
    """A strength for each image, from 0.01 to a tenth of the severity: 1 is the strongest that there is."""
    return (0.1 + (severity - 0.1) * torch.rand(len(images), device=images.device)) / 10


def divergence(*answers: Tensor) -> Tensor:
    """The Jensen-Shannon divergence of logits, averaged over images."""
    logs = [logits.log_softmax(1) for logits in answers]
    mean = torch.stack([one.exp() for one in logs]).mean(0).clamp(1e-7, 1).log()
    total = sum(functional.kl_div(mean, one, reduction="batchmean", log_target=True) for one in logs)
    return torch.as_tensor(total) / len(logs)

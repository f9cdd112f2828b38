"""Fine-tuning after pruning by magnitude: the smallest weights are set to 0 and stay 0.

Han, Pool, Tran & Dally (2015), "Learning both weights and connections for efficient neural networks",
arXiv:1506.02626; here in one step, over all convolutions and linear layers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_fraction
from beaufort.training.interventions.base import Intervention, TrainingContext, plain_loss


def make(training: TrainingContext, *, fraction: float) -> Intervention:
    """Prune and fine-tune the network that `start` of the recipe names.

    Args:
        training: context of the training run.
        fraction: fraction of the weights to remove.
    """
    validate_fraction("fraction", fraction)
    masks, pruned = dict[str, Tensor](), set[int]()

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        if id(model) not in pruned:
            layers = dict(_weights(model))
            pruned.add(id(model))
            masks.update({} if masks else _largest(layers, 1 - fraction))
            for name, weight in layers.items():
                _hold(weight, masks[name])
        return plain_loss(model, images, labels)

    def restore(state: dict[str, Tensor]) -> None:
        masks.update({name: mask.to(training.device) for name, mask in state.items()})

    return Intervention(loss=loss, state=lambda: dict(masks), restore=restore, constant=1)


def _hold(weight: Tensor, mask: Tensor) -> None:
    """Set masked weights and their gradients to 0, so that no step changes them."""
    with torch.no_grad():
        weight.mul_(mask)
    weight.register_hook(lambda slope: slope * mask)


def _weights(model: nn.Module) -> list[tuple[str, Tensor]]:
    found = [
        (f"{name}.weight", layer.weight)
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Conv2d | nn.Linear)
    ]
    if not found:
        raise OptionError("pruning requires a network with Conv2d or Linear layers")
    return found


def _largest(layers: dict[str, Tensor], fraction: float) -> dict[str, Tensor]:
    """Return masks of the largest weights; among equal weights, the first are removed."""
    sizes = torch.cat([weight.detach().abs().flatten() for weight in layers.values()])
    kept = max(1, round(fraction * len(sizes)))
    mask = torch.ones_like(sizes, dtype=torch.float32)
    mask[sizes.argsort(stable=True)[: len(sizes) - kept]] = 0
    parts = mask.split([weight.numel() for weight in layers.values()])
    return {
        name: torch.zeros_like(weight).copy_(part.view_as(weight))  # with the memory layout of the weights
        for (name, weight), part in zip(layers.items(), parts, strict=True)
    }

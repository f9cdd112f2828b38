"""Pruning by magnitude: the smallest weights of a network are set to 0 at the start and stay there.

Han, Pool, Tran & Dally (2015), "Learning both weights and connections for efficient neural networks",
arXiv:1506.02626; here in one step, over all convolutions and linear layers together.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from beaufort._core.errors import OptionError
from beaufort.training.interventions.base import Intervention, TrainingContext, plain_loss


def make(training: TrainingContext, *, share: float) -> Intervention:
    """Fine-tune a pruned network; `start` of the recipe names the one that is pruned.

    Args:
        training: what it is part of.
        share: of the weights that are removed.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise OptionError(f"share must be a number between 0 and 1, got {share!r:.60}")
    masks, pruned = dict[str, Tensor](), set[int]()

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        if id(model) not in pruned:
            layers = dict(_weights(model))
            pruned.add(id(model))
            masks.update({} if masks else _largest(layers, 1 - share))
            for name, weight in layers.items():
                _hold(weight, masks[name])
        return plain_loss(model, images, labels)

    def restore(state: dict[str, Tensor]) -> None:
        masks.update({name: mask.to(training.device) for name, mask in state.items()})

    return Intervention(loss=loss, state=lambda: dict(masks), restore=restore, constant=1)


def _hold(weight: Tensor, mask: Tensor) -> None:
    """Set weights to 0 and keep their gradients there, so that no step moves them: 0 has no decay either."""
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
        raise OptionError(
            "pruning must have a network with convolutions (Conv2d) or linear layers (Linear), whose weights "
            "it removes, got one without"
        )
    return found


def _largest(layers: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """1 for the given share of all weights, those that are largest, and 0 for the others.

    Of weights that are alike, as those that an earlier pruning removed, the first are removed.
    """
    sizes = torch.cat([weight.detach().abs().flatten() for weight in layers.values()])
    kept = max(1, round(share * len(sizes)))
    mask = torch.ones_like(sizes, dtype=torch.float32)
    mask[sizes.argsort(stable=True)[: len(sizes) - kept]] = 0
    parts = mask.split([weight.numel() for weight in layers.values()])
    return {
        name: torch.zeros_like(weight).copy_(part.view_as(weight))  # laid out in memory as the weights
        for (name, weight), part in zip(layers.items(), parts, strict=True)
    }

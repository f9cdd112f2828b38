"""Optimizers and learning rates of a recipe.

A rate is a function of the step alone, so that a resumed training needs to remember nothing about it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from beaufort._core.errors import OptionError
from beaufort._core.optional import require
from beaufort.training.recipe import Recipe

if TYPE_CHECKING:
    from torch import nn

_RISE = 0.3
_FIRST = 25
"""One cycle begins at a 25th of the highest rate."""


def make_optimizer(recipe: Recipe, model: nn.Module) -> Any:
    """The optimizer of a recipe over a network's parameters."""
    torch = require("torch", "training", what="trainings")
    optim = torch.optim
    given: dict[str, Any] = {"lr": recipe.rate, "weight_decay": recipe.weight_decay}
    parameters = [one for one in model.parameters() if one.requires_grad]
    if not parameters:
        raise OptionError(
            f"the network {recipe.architecture!r} must have parameters that require gradients, got none; "
            "there is nothing to train"
        )
    fused = all(one.is_cuda for one in parameters)
    if recipe.optimizer == "sgd":
        given |= {"momentum": recipe.momentum, "nesterov": recipe.nesterov}
        if recipe.replay and fused:  # a recorded step reads its rate from the GPU
            given |= {"lr": torch.tensor(recipe.rate, device=parameters[0].device), "fused": True}
        return optim.SGD(parameters, **given)
    kind = optim.Adam if recipe.optimizer == "adam" else optim.AdamW
    return kind(parameters, fused=fused, **given)


def rate_at(recipe: Recipe, step: int, steps: int) -> float:
    """The learning rate of a step, counted from 0, of so many.

    >>> rate_at(Recipe(name="a", architecture="conv1", rate=1.0, schedule="cosine"), 5, 10)
    0.5
    """
    share = step / max(1, steps)
    if recipe.schedule == "cosine":
        return recipe.lowest_rate + (recipe.rate - recipe.lowest_rate) * _cosine(share)
    if recipe.schedule == "one-cycle":
        if share < _RISE:
            low = recipe.rate / _FIRST
            return low + (recipe.rate - low) * (1 - _cosine(share / _RISE))
        return recipe.rate * _cosine((share - _RISE) / (1 - _RISE))
    if recipe.schedule == "steps":
        return float(recipe.rate * 0.1 ** sum(share >= milestone for milestone in recipe.milestones))
    return recipe.rate


def set_rate(optimizer: Any, rate: float) -> None:
    """Give all parameters this learning rate; one that lies on a GPU is overwritten there."""
    for group in optimizer.param_groups:
        if hasattr(group["lr"], "fill_"):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def _cosine(share: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * share))

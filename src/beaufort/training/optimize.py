"""Optimizers and learning rates of a recipe.

The rate is a function of the step alone, so that resuming needs no state.
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
"""Fraction of one cycle in which the rate rises, from the highest rate divided by `_FIRST`."""
_FIRST = 25


def make_optimizer(recipe: Recipe, model: nn.Module) -> Any:
    """Return the optimizer of a recipe for a network's parameters."""
    torch = require("torch", "training", what="training runs")
    optim = torch.optim
    given: dict[str, Any] = {"lr": recipe.rate, "weight_decay": recipe.weight_decay}
    parameters = [one for one in model.parameters() if one.requires_grad]
    if not parameters:
        raise OptionError(f"the network {recipe.architecture!r} has no parameters that require gradients")
    fused = all(one.is_cuda for one in parameters)
    if recipe.optimizer == "sgd":
        given |= {"momentum": recipe.momentum, "nesterov": recipe.nesterov}
        if recipe.replay and fused:  # a recorded step reads its rate from the GPU
            given |= {"lr": torch.tensor(recipe.rate, device=parameters[0].device), "fused": True}
        return optim.SGD(parameters, **given)
    kind = optim.Adam if recipe.optimizer == "adam" else optim.AdamW
    return kind(parameters, fused=fused, **given)


def rate_at(recipe: Recipe, step: int, steps: int) -> float:
    """Return the learning rate of a step, counted from 0.

    >>> rate_at(Recipe(name="a", architecture="conv1", rate=1.0, schedule="cosine"), 5, 10)
    0.5
    """
    done = step / max(1, steps)
    if recipe.schedule == "cosine":
        return recipe.lowest_rate + (recipe.rate - recipe.lowest_rate) * _cosine(done)
    if recipe.schedule == "one-cycle":
        if done < _RISE:
            low = recipe.rate / _FIRST
            return low + (recipe.rate - low) * (1 - _cosine(done / _RISE))
        return recipe.rate * _cosine((done - _RISE) / (1 - _RISE))
    if recipe.schedule == "steps":
        return float(recipe.rate * 0.1 ** sum(done >= milestone for milestone in recipe.milestones))
    return recipe.rate


def set_rate(optimizer: Any, rate: float) -> None:
    """Set the learning rate of all parameters; a rate on the GPU is overwritten there."""
    for group in optimizer.param_groups:
        if hasattr(group["lr"], "fill_"):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def _cosine(done: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * done))

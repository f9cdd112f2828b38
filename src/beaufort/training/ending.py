"""How a training ended: whether its network learned to tell images apart.

A training can fail without an error: the network gives every image one answer, or its weights are no longer
numbers. The first shows in the loss of the last epoch, which is then that of the best constant answer: for
cross entropy the shares of the classes, which have the entropy of the labels. So the training alone decides,
and no test image is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from beaufort.training.recipe import Recipe

_SHARE = 0.99
"""Of a constant answer's loss: a network above it knows less than a hundredth of what the labels say."""

ENDING_RULE = (
    "A training shows no sign of learning if the mean loss of its last epoch is not below 99 % of what the "
    "best constant answer has, or is not a number. The training alone decides, and nothing that is tested."
)


def label_entropy(counts: Sequence[int]) -> float:
    """The cross entropy of the best answer that is the same for all images, from the counts of labels.

    >>> round(label_entropy([5, 5]), 4)
    0.6931
    """
    total = sum(counts)
    return sum(-count / total * math.log(count / total) for count in counts if count)


def constant_loss(recipe: Recipe, counts: Sequence[int]) -> float | None:
    """The loss of the best constant answer in a training; None where a loss does not tell.

    Args:
        recipe: of the training.
        counts: how often each class is among its labels.
    """
    from beaufort.training.architectures import build
    from beaufort.training.interventions import least_constant_loss, make_intervention

    if recipe.architecture.startswith("python:"):
        return None  # code is run only where somebody names it
    model = build(recipe.architecture, recipe.architecture_options)
    intervention = make_intervention(recipe.intervention, recipe.intervention_options, seed=0, device="cpu")
    return least_constant_loss(intervention, model, counts)


def is_checked(facts: Mapping[str, Any]) -> bool:
    """Whether the facts of a training tell how it ended."""
    return bool(facts.get("losses")) and (
        facts["losses"][-1] is None or facts.get("constant_loss") is not None
    )


def failure(facts: Mapping[str, Any]) -> str:
    """Why the facts of a training show no sign of learning; empty if they do, or do not tell.

    >>> failure({"losses": [2.31, 2.3012], "constant_loss": 2.301})
    'its last loss is 2.3012, and a constant answer has 2.3010'
    """
    if not is_checked(facts):
        return ""
    last, constant = facts["losses"][-1], facts.get("constant_loss")
    if last is None:
        return "its last loss is not a number"
    if constant is None or last < _SHARE * constant:
        return ""
    return f"its last loss is {last:.4f}, and a constant answer has {constant:.4f}"

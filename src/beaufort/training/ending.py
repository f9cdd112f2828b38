"""Detecting training runs whose network learned nothing.

A training run can fail without an error: the network predicts the same for every image, or its weights become
NaN. In the first case, the loss of the last epoch is that of the best constant prediction: for cross entropy,
the entropy of the labels. So the training loss alone decides, and no test image is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from beaufort.training.recipe import Recipe

_MAX_FRACTION = 0.99
"""Fraction of the loss of the best constant prediction; a network above it has learned nothing."""

ENDING_RULE = (
    "A training run has failed if the mean loss of its last epoch is NaN, or at least 99 % of the loss of "
    "the best constant prediction. Test images are not used for this."
)


def label_entropy(counts: Sequence[int]) -> float:
    """Return the cross entropy of the best constant prediction, from the counts of labels.

    >>> round(label_entropy([5, 5]), 4)
    0.6931
    """
    total = sum(counts)
    return sum(-count / total * math.log(count / total) for count in counts if count)


def constant_loss(recipe: Recipe, counts: Sequence[int]) -> float | None:
    """Return the loss of the best constant prediction; None if unknown.

    Args:
        recipe: recipe of the training run.
        counts: number of images of each class.
    """
    from beaufort.training.architectures import build
    from beaufort.training.interventions import least_constant_loss, make_intervention

    if recipe.architecture.startswith("python:"):
        return None  # such code runs only if the user names it
    model = build(recipe.architecture, recipe.architecture_options)
    intervention = make_intervention(recipe.intervention, recipe.intervention_options, seed=0, device="cpu")
    return least_constant_loss(intervention, model, counts)


def is_checked(facts: Mapping[str, Any]) -> bool:
    """Return whether `failure` can judge the facts of a training run."""
    return bool(facts.get("losses")) and (
        facts["losses"][-1] is None or facts.get("constant_loss") is not None
    )


def failure(facts: Mapping[str, Any]) -> str:
    """Return why the network of a training run learned nothing; empty if it did learn, or if unknown.

    >>> failure({"losses": [2.31, 2.3012], "constant_loss": 2.301})
    'its last loss is 2.3012; a constant prediction has 2.3010'
    """
    if not is_checked(facts):
        return ""
    last, constant = facts["losses"][-1], facts.get("constant_loss")
    if last is None:
        return "its last loss is NaN"
    if constant is None or last < _MAX_FRACTION * constant:
        return ""
    return f"its last loss is {last:.4f}; a constant prediction has {constant:.4f}"

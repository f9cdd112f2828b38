"""What a training does beyond minimizing the loss on clean images: one file for each intervention.

An intervention may change the images of a block before they are cut into batches (`prepare`), and how the
loss of a batch is made (`loss`). One that learns along keeps tensors of its own (`state`, `restore`).
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from beaufort.errors import OptionError
from beaufort.training.interventions import (
    augmix,
    corruptions,
    front,
    network,
    noise,
    pgd,
    plain,
    prime,
    pruning,
    stability,
)
from beaufort.training.interventions._intervention import (
    Intervention,
    TrainingContext,
    interventions,
    least_constant_loss,
    plain_loss,
)

__all__ = [
    "Intervention",
    "TrainingContext",
    "interventions",
    "least_constant_loss",
    "make_intervention",
    "plain_loss",
]

interventions.register("augmix", augmix.make)
interventions.register("corruptions", corruptions.make)
interventions.register("front", front.make)
interventions.register("network", network.make)
interventions.register("noise", noise.make)
interventions.register("pgd", pgd.make)
interventions.register("plain", plain.make)
interventions.register("prime", prime.make)
interventions.register("pruning", pruning.make)
interventions.register("stability", stability.make)


def make_intervention(name: str, options: Mapping[str, Any], *, seed: int, device: str) -> Intervention:
    """An intervention by its name, with its options."""
    make = interventions[name]
    try:
        return make(TrainingContext(seed, device), **options)
    except TypeError as error:
        known = ", ".join(list(signature(make).parameters)[1:])
        raise OptionError(
            f"the options of the intervention {name!r} do not fit: {error}; known are {known}"
        ) from None

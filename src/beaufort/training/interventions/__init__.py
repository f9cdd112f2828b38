"""What a training does beyond minimizing the loss on clean images: one file for each intervention.

An intervention may change the images of a block before they are cut into batches (`prepare`), and how the
loss of a batch is made (`loss`). One that learns along keeps tensors of its own (`state`, `restore`).
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown
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
    known = dict(list(signature(make).parameters.items())[1:])
    several = any(one.kind is Parameter.VAR_KEYWORD for one in known.values())
    for option in options:
        if option not in known and not several:
            raise OptionError(unknown(f"option of the intervention {name!r}:", option, known))
    if absent := [key for key, one in known.items() if _is_needed(one) and key not in options]:
        raise OptionError(f"the intervention {name!r} must have the option {absent[0]!r}, got none")
    try:
        return make(TrainingContext(seed, device), **options)
    except TypeError as error:
        raise OptionError(f"the options of the intervention {name!r} do not fit: {error}") from None


def _is_needed(option: Parameter) -> bool:
    return option.default is Parameter.empty and option.kind is not Parameter.VAR_KEYWORD

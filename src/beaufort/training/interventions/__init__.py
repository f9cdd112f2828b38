"""Interventions: changes of training that may improve robustness, one module each.

An intervention may change the images of a block before they are split into batches (`prepare`) and the loss
of a batch (`loss`). One with parameters of its own saves and restores them (`state`, `restore`).
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort.training.interventions import (
    augmix,
    corruptions,
    image_filter,
    network,
    noise,
    pgd,
    plain,
    prime,
    pruning,
    stability,
)
from beaufort.training.interventions.base import (
    Intervention,
    TrainingContext,
    augmented,
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

for _module in (augmix, corruptions, image_filter, network, noise, pgd, plain, prime, pruning, stability):
    interventions.register(_module.__name__.rpartition(".")[2], _module.make)


def make_intervention(name: str, options: Mapping[str, Any], *, seed: int, device: str) -> Intervention:
    """Return an intervention by its name, with its options and those of `augmented`."""
    make = interventions[name]
    known = dict(list(signature(make).parameters.items())[1:])
    moves = {key: options[key] for key in ("shift", "flip") if key in options and key not in known}
    own = {key: value for key, value in options.items() if key not in moves}
    for option in own:
        if option not in known:
            names = dict.fromkeys((*known, "shift", "flip"))
            raise OptionError(unknown_message(f"option of the intervention {name!r}:", option, names))
    if missing := [key for key, one in known.items() if one.default is Parameter.empty and key not in own]:
        raise OptionError(f"the intervention {name!r} requires the option {missing[0]!r}")
    try:
        return augmented(make(TrainingContext(seed, device), **own), **moves)
    except TypeError as error:
        raise OptionError(f"invalid options of the intervention {name!r}: {error}") from None

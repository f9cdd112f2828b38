"""What a training does beyond minimizing the loss on clean images: one file for each intervention.

An intervention may change the images of a block before they are cut into batches (`prepare`), and how the
loss of a batch is made (`loss`). One that learns along keeps tensors of its own (`state`, `restore`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from beaufort.errors import OptionError
from beaufort.training.interventions import corruptions, network, pgd, plain
from beaufort.training.interventions._intervention import Intervention, interventions, plain_loss
from beaufort.training.recipe import Recipe

__all__ = ["Intervention", "interventions", "make_intervention", "plain_loss"]

interventions.register("corruptions", corruptions.make)
interventions.register("network", network.make)
interventions.register("pgd", pgd.make)
interventions.register("plain", plain.make)


def make_intervention(
    name: str, options: Mapping[str, Any], *, recipe: Recipe, seed: int, device: str
) -> Intervention:
    """An intervention by its name, with its options."""
    make = interventions[name]
    try:
        return make(recipe=recipe, seed=seed, device=device, **options)
    except TypeError as error:
        raise OptionError(f"the options of the intervention {name!r} do not fit: {error}") from None

"""Blue noise sample: evenly spread missing pixels."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Field, Images, Ops, Random, corruption
from beaufort.corruptions._spectrum import colored, phases


class Params(NamedTuple):
    """Number of missing pixels."""

    magnitude: float
    """Pixels below 0.3 × this - 2.5 standard deviations of the noise become black."""


def draw(random: Random, images: Images, p: Params) -> Field:
    """Draw the phases of blue noise."""
    return phases(random.reseeded(), images)


@corruption(
    "unseen",
    draw=draw,
    levels={
        "imagenet": [Params(m) for m in (0.8, 1.6, 2.4, 4, 5.6)],
        "cifar": [Params(m) for m in (0.7, 1.4, 2.1, 3.5, 4.2)],
    },
)
def blue_noise_sample(images: Images, p: Params, half: Field, ops: Ops) -> Images:
    """Set 1 to 21 percent of the pixels to black, spread evenly by blue noise."""
    noise = colored(half, images, ops.sqrt, ops)
    kept: Images = images * (noise > 0.3 * p.magnitude - 2.5)[..., None]
    return kept

"""Brownish noise: soft blotches of color."""

from __future__ import annotations

from typing import Any, NamedTuple

from beaufort.corruptions import Field, Images, Ops, Random, corruption
from beaufort.corruptions._spectrum import colored, phases


class Params(NamedTuple):
    """Strength of the blotches."""

    magnitude: float
    """Standard deviation in units of 6.4 levels."""


def draw(random: Random, images: Images, p: Params) -> list[Field]:
    """Draw the phases of one noise per channel."""
    random = random.reseeded()
    return [phases(random, images) for _ in range(images.shape[3])]


def _amplitude(squared: Any) -> Any:
    return 1 / (squared + 1)


@corruption(
    "unseen",
    draw=draw,
    levels={
        "imagenet": [Params(m) for m in (1, 2, 3, 4, 5)],
        "cifar": [Params(m) for m in (2.5, 4, 5.5, 6.5, 7)],
    },
)
def brownish_noise(images: Images, p: Params, halves: list[Field], ops: Ops) -> Images:
    """Add noise to each channel whose amplitude falls with the square of the frequency."""
    out = ops.real(images)
    for color, half in enumerate(halves):
        out[..., color] += 6.4 * p.magnitude * colored(half, images, _amplitude, ops)
    return ops.to_bytes(out)

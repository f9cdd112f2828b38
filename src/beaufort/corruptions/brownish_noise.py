"""Brownish noise: soft blotches of color."""

from __future__ import annotations

from typing import Any, NamedTuple

from beaufort.corruptions import Field, Images, Ops, Random, corruption
from beaufort.corruptions._spectrum import colored, phases


class Params(NamedTuple):
    """How strong the blotches are."""

    magnitude: float
    """6.4 levels of standard deviation for each unit."""


def draw(random: Random, images: Images, p: Params) -> list[Field]:
    """The phases of one noise for each color."""
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
    """Add noise whose waves fall off with the square of their frequency, apart for each color."""
    out = ops.real(images)
    for color, half in enumerate(halves):
        out[..., color] += 6.4 * p.magnitude * colored(half, images, _amplitude, ops)
    return ops.to_bytes(out)

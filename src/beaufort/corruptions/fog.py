"""Fog: a fractal haze in front of the image."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Field, Images, Ops, Random, corruption
from beaufort.corruptions.rng import FieldKey


class Params(NamedTuple):
    """Density of the fog."""

    amount: float
    """Brightness of the thickest fog; the intensity range is [0, 1]."""
    decay: float
    """Smoothness: the amplitude of each finer level falls by the square of this."""
    least_side: int = 16
    """Minimum side of the fractal that the fog is cropped from, in pixels."""

    def side(self, images: Images) -> int:
        """Return the side of the fractal: the next power of two that covers the image."""
        longest = max(int(side) for side in images.shape[1:3])
        return 1 << (max(longest, self.least_side) - 1).bit_length()


def draw(random: Random, images: Images, p: Params) -> Field | FieldKey:
    """Draw the numbers of a diamond-square fractal, level by level."""
    return random.uniform_later(p.side(images) ** 2 - 1)


_PHOTOS = [Params(1.5, 2), Params(2, 2), Params(2.5, 1.7), Params(2.5, 1.5), Params(3, 1.4)]
_DIGITS = [p._replace(least_side=256) for p in _PHOTOS]
"""Digits show a smooth corner of a fractal with a side of 256."""


@corruption(
    "weather",
    draw=draw,
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(1.5, 2), Params(2, 2), Params(2.5, 1.8), Params(2.5, 1.6), Params(3, 1.5)],
        "tiny": [Params(0.4, 3), Params(0.7, 3), Params(1, 2.5), Params(1.5, 2), Params(2, 1.75)],
        "cifar": [Params(0.2, 3), Params(0.5, 3), Params(0.75, 2.5), Params(1, 2), Params(1.5, 1.75)],
    },
)
def fog(images: Images, p: Params, noise: Field | FieldKey, ops: Ops, *, nearest: bool = False) -> Images:
    """Add a fractal, then darken so that the maximum stays the same."""
    field = ops.plasma(noise, p.side(images), p.decay, *images.shape[1:3])
    return ops.haze(images, field, p.amount, nearest=nearest)


fog.for_digits(_DIGITS, published=5, bulk=192, nearest=True)

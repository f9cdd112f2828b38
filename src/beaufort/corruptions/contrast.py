"""Contrast: low contrast."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import FractionKept, Images, Ops, corruption


class Params(NamedTuple):
    """Remaining contrast."""

    factor: FractionKept
    """Fraction of each value's distance from the mean."""


_PHOTOS = [Params(c) for c in (0.4, 0.3, 0.2, 0.1, 0.05)]


@corruption(
    "digital",
    levels={
        "imagenet": _PHOTOS,
        "inception": _PHOTOS,
        "tiny": _PHOTOS,
        "cifar": [Params(c) for c in (0.75, 0.5, 0.4, 0.3, 0.15)],
    },
)
def contrast(images: Images, p: Params, ops: Ops, *, nearest: bool = False) -> Images:
    """Move every value toward the mean of its channel."""
    return ops.lower_contrast(images, p.factor, nearest=nearest)


contrast.for_digits(_PHOTOS, published=4, nearest=True)

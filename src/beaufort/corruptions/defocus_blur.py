"""Defocus blur: a lens that is out of focus."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import DiskRadius, Images, Ops, Softness, corruption


class Params(NamedTuple):
    """Size of the disk."""

    radius: DiskRadius
    softness: Softness
    """Standard deviation of the Gaussian that smooths the edge of the disk."""


_PHOTOS = [Params(3, 0.1), Params(4, 0.5), Params(6, 0.5), Params(8, 0.5), Params(10, 0.5)]


@corruption(
    "blur",
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(4, 0.1), Params(5, 0.5), Params(7, 0.5), Params(10, 0.5), Params(12, 0.5)],
        "tiny": [Params(0.5, 0.6), Params(1, 0.1), Params(1.5, 0.1), Params(2.5, 0.01), Params(3, 0.1)],
        "cifar": [Params(0.3, 0.4), Params(0.4, 0.5), Params(0.5, 0.6), Params(1, 0.2), Params(1.5, 0.1)],
    },
)
def defocus_blur(images: Images, p: Params, ops: Ops, *, nearest: bool = False) -> Images:
    """Spread each pixel over a disk with a soft edge.

    At radius 8 and above the published kernel sums to 1.01, so images become one percent brighter.
    """
    return ops.defocus(images, p.radius, p.softness, nearest=nearest)


defocus_blur.for_digits(_PHOTOS, published=1, nearest=True)

"""Pixelate: few large pixels."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Images, Ops, PerPixel, corruption
from beaufort.corruptions._sizes import nearness


class Params(NamedTuple):
    """Number of remaining pixels."""

    share: PerPixel
    """Ratio of the sides of the small image and the image: the inverse of the size of a cell. The
    name is part of fingerprints."""


class Smooth(Params):
    """The same constants; pixels at the edges of small cells show a mixture of both."""

    __slots__ = ()


_LARGE_CELL = 4
"""Minimum side of cells that consist of whole pixels at every size."""

_PHOTOS = [Params(c) for c in (0.6, 0.5, 0.4, 0.3, 0.25)]


@corruption(
    "digital",
    smooth=Smooth,
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(c) for c in (0.5, 0.4, 0.3, 0.25, 0.2)],
        "tiny": [Params(c) for c in (0.9, 0.8, 0.7, 0.6, 0.5)],
        "cifar": [Params(c) for c in (0.95, 0.9, 0.85, 0.75, 0.65)],
    },
)
def pixelate(images: Images, p: Params, ops: Ops) -> Images:
    """Shrink the image by averaging boxes of whole pixels, and enlarge it again without smoothing."""
    rows, columns = (side * min(p.share, 1) for side in images.shape[1:3])
    if isinstance(p, Smooth) and p.share * _LARGE_CELL > 1:
        return ops.soft_cells(images, rows, columns, 1 - nearness(min(images.shape[1:3])))
    return ops.pixel_cells(images, max(1, int(rows)), max(1, int(columns)))


pixelate.for_digits(_PHOTOS, published=3)

"""Pixelate: enlarged from too few pixels."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Images, Ops, PerPixel, corruption
from beaufort.corruptions._sizes import nearness


class Params(NamedTuple):
    """How few pixels are left."""

    share: PerPixel
    """Side of the small image over the side of the image: one over the size of a cell."""


class Smooth(Params):
    """The same; where cells are small, pixels at the edge of two show a mixture of both."""

    __slots__ = ()


_LARGE_CELL = 4
"""Cells of so many pixels a side have whole pixels at any size: a pixel more or less is little of them."""

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

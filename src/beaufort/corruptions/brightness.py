"""Brightness: an overexposed photo."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Images, Ops, corruption


class Params(NamedTuple):
    """Increase of the brightness."""

    amount: float
    """Added to the value channel of HSV; the intensity range is [0, 1]."""


_PHOTOS = [Params(c) for c in (0.1, 0.2, 0.3, 0.4, 0.5)]


@corruption(
    "weather",
    levels={
        "imagenet": _PHOTOS,
        "inception": _PHOTOS,
        "tiny": _PHOTOS,
        "cifar": [Params(c) for c in (0.05, 0.1, 0.15, 0.2, 0.3)],
    },
)
def brightness(images: Images, p: Params, ops: Ops) -> Images:
    """Increase the value of every pixel and keep its hue and saturation."""
    return ops.brighten(images, p.amount)


@brightness.at("mnist", levels=_PHOTOS, published=5)
def digits(images: Images, p: Params, ops: Ops) -> Images:
    """As for photos, rounded."""
    table = np.minimum(np.arange(256) / 255 + p.amount, 1) * 255
    return ops.look_up(images, np.rint(table.astype(np.float32)).astype(np.uint8))

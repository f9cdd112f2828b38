"""Saturate: colors too pale or too strong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import Images, Ops, corruption


class Params(NamedTuple):
    """New saturation: gain·S + lift."""

    gain: float
    lift: float


_PHOTOS = [Params(0.3, 0), Params(0.1, 0), Params(2, 0), Params(5, 0.1), Params(20, 0.2)]


@corruption(
    "digital",
    levels={
        "imagenet": _PHOTOS,
        "inception": _PHOTOS,
        "tiny": [*_PHOTOS[:4], Params(30, 0.2)],
        "cifar": [Params(0.3, 0), Params(0.1, 0), Params(1.5, 0), Params(2, 0.1), Params(2.5, 0.2)],
    },
)
def saturate(images: Images, p: Params, ops: Ops) -> Images:
    """Scale the saturation of HSV: lower at severities 1 and 2, higher from 3 on.

    If the lift is not zero, grays, whose hue is 0, turn reddish. A grayscale image is treated as a color
    image with equal channels, and the result is converted to gray (0.299, 0.587, 0.114).
    """
    if images.shape[-1] == 3:
        return ops.saturate_colors(images, p.gain, p.lift)
    factor = 0.299 + 0.701 * (1 - min(max(p.lift, 0), 1))
    return ops.look_up(images, (np.arange(256) * factor).astype(np.uint8))


@saturate.at("mnist", levels=_PHOTOS, published=5)
def digits(images: Images, p: Params, ops: Ops) -> Images:
    """Scale hue, saturation and value equally, as the published code does."""
    flat = min(max(p.lift, 0), 1)  # new hue and saturation of gray pixels, both 0 before
    value = np.clip(p.gain * np.arange(256) / 255 + p.lift, 0, 1)
    sector = int(flat * 6)
    fraction = flat * 6 - sector
    low, fall, rise = 1 - flat, 1 - fraction * flat, 1 - (1 - fraction) * flat
    red, green, blue = (
        (1, rise, low),
        (fall, 1, low),
        (low, 1, rise),
        (low, fall, 1),
        (rise, low, 1),
        (1, low, fall),
    )[sector % 6]
    gray = 0.2125 * red + 0.7154 * green + 0.0721 * blue
    return ops.look_up(images, np.rint(np.clip(value * gray, 0, 1) * 255).astype(np.uint8))

"""Gaussian blur: out of focus, softly."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Images, Ops, Pixels, corruption


class Params(NamedTuple):
    """How far the blur reaches."""

    sigma: Pixels
    """Standard deviation of the kernel."""


@corruption(
    "blur",
    levels={
        "imagenet": [Params(s) for s in (1, 2, 3, 4, 6)],
        "inception": [Params(s) for s in (1.5, 2.5, 3.5, 4.5, 6.5)],
        "tiny": [Params(s) for s in (0.5, 0.75, 1, 1.25, 1.5)],
        "cifar": [Params(s) for s in (0.4, 0.6, 0.7, 0.8, 1)],
    },
)
def gaussian_blur(images: Images, p: Params, ops: Ops) -> Images:
    """Blur each channel with a Gaussian, the edge repeated outside."""
    return ops.gaussian(images, p.sigma)


@gaussian_blur.at("mnist", levels=[Params(s) for s in (1, 2, 3, 4, 6)], published=2)
def digits(images: Images, p: Params, ops: Ops) -> Images:
    """Blur down the columns only.

    The published code takes the last axis of a grey image for color and leaves it alone.
    """
    return ops.gaussian(images, p.sigma, horizontal=False, nearest=True)

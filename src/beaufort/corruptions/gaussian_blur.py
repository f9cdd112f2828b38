"""Gaussian blur: slightly out of focus."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Images, Ops, Pixels, corruption


class Params(NamedTuple):
    """Width of the blur."""

    sigma: Pixels
    """Standard deviation of the kernel."""


_PHOTOS = [Params(s) for s in (1, 2, 3, 4, 6)]


@corruption(
    "blur",
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(s) for s in (1.5, 2.5, 3.5, 4.5, 6.5)],
        "tiny": [Params(s) for s in (0.5, 0.75, 1, 1.25, 1.5)],
        "cifar": [Params(s) for s in (0.4, 0.6, 0.7, 0.8, 1)],
    },
)
def gaussian_blur(
    images: Images, p: Params, ops: Ops, *, horizontal: bool = True, nearest: bool = False
) -> Images:
    """Blur each channel with a Gaussian; the border pixels are repeated outside the image.

    MNIST-C is blurred only along columns: the published code takes the last axis of a gray image for color.
    """
    return ops.gaussian(images, p.sigma, horizontal=horizontal, nearest=nearest)


gaussian_blur.for_digits(_PHOTOS, published=2, horizontal=False, nearest=True)

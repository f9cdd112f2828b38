"""JPEG compression: strong compression."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Images, Ops, corruption


class Params(NamedTuple):
    """Strength of the compression."""

    quality: int
    """libjpeg's scale, 1 to 100."""


_PHOTOS = [Params(q) for q in (25, 18, 15, 10, 7)]


@corruption(
    "digital",
    levels={
        "imagenet": _PHOTOS,
        "inception": [Params(q) for q in (23, 16, 13, 8, 5)],
        "tiny": [Params(q) for q in (65, 58, 50, 40, 25)],
        "cifar": [Params(q) for q in (80, 65, 58, 50, 40)],
    },
)
def jpeg_compression(images: Images, p: Params, ops: Ops) -> Images:
    """Encode as baseline JPEG with halved color resolution, and decode; gray stays one channel."""
    return ops.jpeg(images, p.quality)


jpeg_compression.for_digits(_PHOTOS, published=5)

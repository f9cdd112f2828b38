"""Greyscale: colors removed, as in the ImageNet testbed."""

from __future__ import annotations

from typing import NamedTuple

from beaufort.corruptions import Images, Ops, corruption


class Params(NamedTuple):
    """No parameters."""


@corruption("digital", levels={"imagenet": [Params()]})
def greyscale(images: Images, p: Params, ops: Ops) -> Images:
    """Replace each pixel by its luma, 0.299 R + 0.587 G + 0.114 B, in all three channels."""
    if images.shape[-1] != 3:
        return images
    values = ops.real(images)
    luma = 0.299 * values[..., 0] + 0.587 * values[..., 1] + 0.114 * values[..., 2]
    return ops.to_bytes(luma[..., None] + 0 * values, nearest=True)

"""Images mixed with textures as a Triton kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.device import beside


@triton.jit
def _blend(images, crops, weights, out, size, line, NEAREST: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    start = tl.load(crops + 2 * image).to(tl.pointer_type(tl.uint8))
    stride = tl.load(crops + 2 * image + 1).to(tl.int32)
    value = tl.load(images + image * size + at, mask=mask, other=0).to(tl.float64)
    over = tl.load(start + (at // line) * stride + at % line, mask=mask, other=0).to(tl.float64)
    made = tl.load(weights) * value + tl.load(weights + 1) * over
    made = tl.minimum(tl.maximum(made, 0.0), 255.0)
    if NEAREST:
        made = (made + 4503599627370496.0) - 4503599627370496.0
    tl.store(out + image * size + at, made.to(tl.int32).to(tl.uint8), mask=mask)


def blend(
    images: Tensor, textures: Sequence[Tensor], crops: NDArray[np.int64], weights: Tensor, nearest: bool
) -> Tensor:
    """a·X + b·F in double precision, each product rounded; an image knows where in memory its crop starts."""
    out = torch.empty_like(images)
    size, channels = math.prod(images.shape[1:]), images.shape[-1]
    bases = np.array([texture.data_ptr() for texture in textures], np.int64)
    strides = np.array([texture.shape[1] * channels for texture in textures], np.int64)
    number, row, column = crops.T
    starts = bases[number] + row * strides[number] + column * channels
    places = beside(np.stack([starts, strides[number]], axis=-1), images)
    line = images.shape[2] * channels
    _blend[(triton.cdiv(size, 1024), len(images))](
        images, places, weights, out, size, line, nearest, 1024, enable_fp_fusion=False
    )
    return out

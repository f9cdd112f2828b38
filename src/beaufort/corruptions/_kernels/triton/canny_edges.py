"""Chains of edge pixels as a Triton kernel: a program works on a whole image."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 512


@triton.jit
def _connect(labels, height, width, block: tl.constexpr):
    """One image: sweep over it until nothing changes; what is found is used at once."""
    source = labels + tl.program_id(0).to(tl.int64) * height * width
    area = height * width
    grown = 1
    while grown > 0:
        grown = 0
        for start in range(0, area, block):
            at = start + tl.arange(0, block)
            weak = tl.load(source + at, mask=at < area, other=0) == 1
            if tl.max(weak.to(tl.int32), axis=0) > 0:
                y, x = at // width, at % width
                above, below = weak & (y > 0), weak & (y < height - 1)
                left, right = x > 0, x < width - 1
                near = tl.load(source + at - 1, mask=weak & left, other=0)
                near = tl.maximum(near, tl.load(source + at + 1, mask=weak & right, other=0))
                near = tl.maximum(near, tl.load(source + at - width, mask=above, other=0))
                near = tl.maximum(near, tl.load(source + at - width - 1, mask=above & left, other=0))
                near = tl.maximum(near, tl.load(source + at - width + 1, mask=above & right, other=0))
                near = tl.maximum(near, tl.load(source + at + width, mask=below, other=0))
                near = tl.maximum(near, tl.load(source + at + width - 1, mask=below & left, other=0))
                near = tl.maximum(near, tl.load(source + at + width + 1, mask=below & right, other=0))
                tied = weak & (near == 2)
                tl.store(source + at, tl.full([block], 2, tl.uint8), mask=tied)
                grown += tl.sum(tied.to(tl.int32), axis=0)
            tl.debug_barrier()


def connect(labels: Tensor) -> Tensor:
    """As `connect` in torch; a program an image, so that none waits for another's chains."""
    count, height, width = labels.shape
    joined = labels.clone()
    block = min(2048, triton.next_power_of_2(height * width))
    _connect[(count,)](
        joined, height, width, block, num_warps=8 if block > 1024 else 4, enable_fp_fusion=False
    )
    return joined

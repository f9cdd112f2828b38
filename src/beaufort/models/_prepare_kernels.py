"""Preprocessing on a GPU in one pass: values are looked up in a table per channel."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK = 4096


@triton.jit
def _look_up(
    images, table, out, count, pixels, CHANNELS: tl.constexpr, PLANES: tl.constexpr, BLOCK: tl.constexpr
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    channel = at % CHANNELS
    level = tl.load(images + at, mask=inside, other=0).to(tl.int32)
    value = tl.load(table + channel * 256 + level, mask=inside, other=0)
    if PLANES:  # from channels last to channels first
        pixel = at // CHANNELS
        at = ((pixel // pixels) * CHANNELS + channel) * pixels + pixel % pixels
    tl.store(out + at, value, mask=inside)


def look_up(images: Any, table: Any, *, planes: bool) -> Any:
    """Return `table[channel, value]` of contiguous images `(n, h, w, c)`, as `(n, c, h, w)` if `planes`."""
    n, height, width, channels = images.shape
    shape = (n, channels, height, width) if planes else images.shape
    out = torch.empty(shape, dtype=table.dtype, device=images.device)
    grid = (triton.cdiv(images.numel(), _BLOCK),)
    with torch.cuda.device(images.device):
        _look_up[grid](images, table, out, images.numel(), height * width, channels, planes, BLOCK=_BLOCK)
    return out

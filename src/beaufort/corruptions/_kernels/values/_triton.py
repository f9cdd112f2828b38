"""Look-ups as a Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 2048


@triton.jit
def _look_up(values, table, out, size, last, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    value = tl.load(values + at, mask=mask, other=0).to(tl.int32)
    tl.store(out + at, tl.load(table + tl.minimum(value, last), mask=mask, other=0), mask=mask)


def look_up(values: Tensor, table: Tensor) -> Tensor:
    """The table's value for each value."""
    out = torch.empty(values.shape, dtype=torch.uint8, device=values.device)
    size = values.numel()
    _look_up[(triton.cdiv(size, _BLOCK),)](values, table, out, size, len(table) - 1, _BLOCK)
    return out

"""Scores of logits on a GPU, one program per row, in registers."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def _score(
    logits,
    labels,
    out,
    places,
    classes,
    LOWEST: tl.constexpr,
    TOLERANCE: tl.constexpr,
    TOP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < classes
    infinity = float("inf")
    x = tl.load(logits + row * classes + at, mask=inside, other=-infinity)
    highest = tl.max(tl.where(x != x, -infinity, x), axis=0)
    invalid = tl.sum(((x != x) | (x == infinity)).to(tl.int32), axis=0)
    usable = (invalid == 0) & (highest > -infinity)
    least = tl.min(tl.where(inside, x, infinity), axis=0)
    probabilities = (least >= 0) & (
        tl.abs(tl.sum(tl.where(inside, x.to(tl.float64), 0.0), axis=0) - 1.0) < TOLERANCE
    )
    wide = x.to(tl.float64) - highest.to(tl.float64)
    exps = tl.exp(wide)
    total = tl.sum(exps, axis=0)
    log_total = tl.log(total)
    label = tl.load(labels + row)
    known = (label >= 0) & (label < classes)
    log_label = tl.sum(tl.where(at == label, wide, 0.0), axis=0) - log_total
    log_label = tl.where(known, log_label, -infinity)
    p_label = tl.exp(log_label)
    brier = tl.sum(exps * exps, axis=0) / (total * total) - 2.0 * p_label + 1.0
    entropy = log_total - tl.sum(exps * tl.where(wide < LOWEST, LOWEST, wide), axis=0) / total
    # keys as in `_top_classes_of_tensor`
    bits = (x + 0.0).to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    key = tl.where(inside, ordered * 4294967296 + (BLOCK - 1 - at), -9223372036854775808)
    row_of = row * (2 * TOP + 6)
    for place in tl.static_range(TOP):
        best = tl.max(key, axis=0)
        class_ = (BLOCK - 1) - (best & 0xFFFFFFFF).to(tl.int32)
        p = tl.sum(tl.where(at == class_, exps, 0.0), axis=0) / total
        tl.store(places + row_of + place, class_)
        tl.store(out + row_of + TOP + place, p.to(tl.float32))
        key = tl.where(at == class_, -9223372036854775808, key)
    rest = out + row_of + 2 * TOP
    tl.store(rest, p_label.to(tl.float32))
    tl.store(rest + 1, (-log_label).to(tl.float32))
    tl.store(rest + 2, brier.to(tl.float32))
    tl.store(rest + 3, entropy.to(tl.float32))
    tl.store(rest + 4, usable.to(tl.float32))
    tl.store(rest + 5, probabilities.to(tl.float32))


def score_rows(logits: Any, labels: Any, count: int, *, lowest: float, tolerance: float) -> Any:
    """Return the packed scores of contiguous float32 logits, with the `count` best classes."""
    import torch

    rows, classes = logits.shape
    out = torch.empty((rows, 2 * count + 6), dtype=torch.float32, device=logits.device)
    block = triton.next_power_of_2(classes)
    _score[(rows,)](
        logits,
        labels,
        out,
        out.view(torch.int32),
        classes,
        LOWEST=lowest,
        TOLERANCE=tolerance,
        TOP=count,
        BLOCK=block,
    )
    return out

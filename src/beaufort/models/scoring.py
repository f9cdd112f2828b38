"""From logits to what is kept of an answer: the best classes, and how well the distribution fits the truth.

`score_logits` works on arrays of the host, `score_tensor` on the device that the logits are on. Both give the
same classes, ties included, and the same numbers up to the rounding of float32: the arithmetic is in double
precision on either side, and only the order of its sums may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TOP = 5
"""How many classes are kept of each answer."""

_PIECE = 1 << 18
"""Number of values processed at a time, so that they fit in the processor's cache."""

_SUM_TOLERANCE = 0.01
"""How far from 1 the sum of probabilities may be that a network computed in bfloat16."""

_LOWEST = -1e300
"""Stands for -inf where it is multiplied by a probability of 0."""

_MOST_CLASSES = 1 << 15
"""Of a row that fits a GPU's registers."""

_COLUMNS = ("p_label", "nll", "brier", "entropy", "usable", "shares")


class PredictionScores(NamedTuple):
    """What is kept of some images' answers, one row an image."""

    top: NDArray[np.int32]
    """The most probable classes, best first, `(images, 5 or fewer)`; of equal ones, the lower first."""
    p: NDArray[np.float32]
    """Their probabilities."""
    p_label: NDArray[np.float32]
    """The probability of the true class, or of all that are right; 0 if none is among the classes."""
    nll: NDArray[np.float32]
    """Its negative logarithm."""
    brier: NDArray[np.float32]
    entropy: NDArray[np.float32]
    """In nats."""
    usable: NDArray[np.bool_]
    """Whether the logits are numbers or -inf, one of them a number; without that, the rest means nothing."""
    are_probabilities: NDArray[np.bool_]
    """Whether the logits look like probabilities: none below 0, the sum about 1."""


def correct(top: NDArray[Any], labels: NDArray[Any], among: int = 1) -> NDArray[np.bool_]:
    """Whether the true class is among the `among` most probable ones.

    >>> correct(np.array([[3, 1], [2, 0]]), np.array([3, 0])).tolist()
    [True, False]

    Args:
        top: classes, best first, `(…, images, classes kept)`.
        labels: the true classes, `(images,)`; or the classes that are right for each image, `(images, most)`,
            filled up with -1.
        among: 1 asks for the most probable class, 5 for one of the five.
    """
    truth = np.asarray(labels)
    if truth.ndim == 1:
        truth = truth[:, None]
    found = np.zeros(top.shape[:-1], np.bool_)
    for place in range(truth.shape[1]):
        found |= np.equal(top[..., :among], truth[:, place, None]).any(axis=-1)
    return found


def are_probabilities(logits: Any) -> Any:
    """Whether each row of an array or a tensor looks like probabilities: none below 0, the sum about 1."""
    if isinstance(logits, np.ndarray):
        sums = logits.astype(np.float64).sum(axis=1)
        return (logits.min(axis=1, initial=np.inf) >= 0) & (abs(sums - 1) < _SUM_TOLERANCE)
    return (logits.amin(dim=1) >= 0) & ((logits.double().sum(dim=1) - 1).abs() < _SUM_TOLERANCE)


def join_scores(parts: Sequence[PredictionScores]) -> PredictionScores:
    """The scores of several batches as one."""
    return parts[0] if len(parts) == 1 else PredictionScores(*map(np.concatenate, zip(*parts, strict=True)))


def score_logits(logits: NDArray[np.float32], labels: NDArray[Any]) -> PredictionScores:
    """The scores of float32 logits `(images, classes)` beside the true classes, in either form of `correct`.

    A set of classes that are right counts as one class, whose probability is the sum of theirs.
    """
    step = max(1, _PIECE // max(1, logits.shape[1]))
    spans = [slice(start, start + step) for start in range(0, max(1, len(logits)), step)]
    return join_scores([_score(logits[span], labels[span]) for span in spans])


def _score(logits: NDArray[np.float32], labels: NDArray[Any]) -> PredictionScores:
    highest = logits.max(axis=1, initial=-np.inf)
    usable = np.isfinite(highest)
    if not usable.all():
        logits = np.where(usable[:, None], logits, np.float32(0))
        highest = np.where(usable, highest, np.float32(0))
    wide = logits.astype(np.float64)
    shares = (logits.min(axis=1, initial=np.inf) >= 0) & (abs(wide.sum(axis=1) - 1) < _SUM_TOLERANCE)
    wide -= highest[:, None]
    exps = np.exp(wide)
    total = exps.sum(axis=1)
    log_total = np.log(total)
    rows, classes = np.arange(len(logits)), logits.shape[1]
    top = _best(logits, min(TOP, classes))
    known = (labels >= 0) & (labels < classes)
    squares = np.einsum("ij,ij->i", exps, exps) / total**2
    if labels.ndim == 1:
        log_label = np.where(known, wide[rows, np.where(known, labels, 0)] - log_total, -np.inf)
    else:
        each = np.take_along_axis(wide, np.where(known, labels, 0), axis=1) - log_total[:, None]
        each = np.where(known, each, -np.inf)
        log_label = np.logaddexp.reduce(each, axis=1)
        squares += np.exp(log_label) ** 2 - np.exp(2 * each).sum(axis=1)
    p_label = np.exp(log_label)
    np.maximum(wide, _LOWEST, out=wide)
    brier = squares - 2 * p_label + 1
    entropy = log_total - np.einsum("ij,ij->i", exps, wide) / total
    return PredictionScores(
        top,
        (np.take_along_axis(exps, top, axis=1) / total[:, None]).astype(np.float32),
        p_label.astype(np.float32),
        (-log_label).astype(np.float32),
        brier.astype(np.float32),
        entropy.astype(np.float32),
        usable,
        shares,
    )


def _best(logits: NDArray[np.float32], count: int) -> NDArray[np.int32]:
    """The numbers of the largest logits of each row, by logit, then by class number.

    As many passes as classes are asked for take a tenth of the time of a sort of a thousand classes.
    """
    rest, rows = logits.copy(), np.arange(len(logits))
    top = np.empty((len(logits), count), np.int32)
    for place in range(count):
        top[:, place] = best = rest.argmax(axis=1)  # the first of equal ones
        masked = np.isneginf(rest[rows, best])  # a pass cannot tell these from what it has taken
        rest[rows, best] = -np.inf
    top[masked] = np.argsort(-logits[masked], axis=1, kind="stable")[:, :count]
    return top


def score_tensor(logits: Any, labels: Any) -> Any:
    """As `score_logits`, of tensors on any device: all columns in one float32 tensor, for `unpack_scores`.

    The host waits for nothing, and one copy brings everything there.
    """
    import torch

    from beaufort._core.device import use_kernels

    logits = logits.float().contiguous()
    classes = logits.shape[1]
    if use_kernels(logits) and classes <= _MOST_CLASSES:
        from beaufort.models._score_kernels import score_rows

        with torch.cuda.device(logits.device) if logits.is_cuda else nullcontext():
            return score_rows(logits, labels, min(TOP, classes), lowest=_LOWEST, tolerance=_SUM_TOLERANCE)
    highest = logits.amax(dim=1, keepdim=True)
    usable = highest.isfinite()
    wide = logits.double()
    shares = (logits.amin(dim=1) >= 0) & ((wide.sum(dim=1) - 1).abs() < _SUM_TOLERANCE)
    wide = wide - highest
    exps = wide.exp()
    total = exps.sum(dim=1)
    log_total = total.log()
    top = _best_of_tensor(logits, min(TOP, classes))
    known = (labels >= 0) & (labels < classes)
    at = labels.where(known, 0)[:, None]
    log_label = (wide.gather(1, at)[:, 0] - log_total).where(known, -torch.inf)
    p_label = log_label.exp()
    columns = (
        p_label,
        -log_label,
        exps.square().sum(dim=1) / total.square() - 2 * p_label + 1,
        log_total - (exps * wide.clamp(min=_LOWEST)).sum(dim=1) / total,
        usable[:, 0],
        shares,
    )
    packed = torch.stack([column.float() for column in columns], dim=1)
    p = (exps.gather(1, top) / total[:, None]).float()
    return torch.cat([top.int().view(torch.float32), p, packed], dim=1)


def _best_of_tensor(logits: Any, count: int) -> Any:
    """The numbers of the largest logits: no two keys are equal, so that no tie is left to the device.

    The bits of a float32, those below the sign turned over for negative ones, are in the order of the floats;
    below them stands the class, the lower number first.
    """
    import torch

    bits = (logits + 0.0).view(torch.int32)  # -0 becomes 0
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long()
    behind = torch.arange(logits.shape[1] - 1, -1, -1, device=logits.device)
    return torch.topk(ordered * 2**32 + behind, count, dim=1).indices


def unpack_scores(packed: NDArray[np.float32]) -> PredictionScores:
    """What `score_tensor` packed."""
    count = (packed.shape[1] - len(_COLUMNS)) // 2
    top = np.ascontiguousarray(packed[:, :count]).view(np.int32)
    p = np.ascontiguousarray(packed[:, count : 2 * count])
    p_label, nll, brier, entropy, usable, shares = np.ascontiguousarray(packed[:, 2 * count :].T)
    return PredictionScores(top, p, p_label, nll, brier, entropy, usable > 0, shares > 0)

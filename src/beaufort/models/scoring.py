"""Scores of predictions: from logits to the top classes, probabilities and losses that are stored.

`score_logits` works on arrays, `score_tensor` on the device of the logits. Both return the same classes,
including ties, and the same numbers up to float32 rounding: both compute in double precision, and only the
order of sums may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TOP = 5
"""Number of classes stored per prediction."""

_CHUNK = 1 << 18
"""Number of values processed at a time, which fit in the processor's cache."""

_SUM_TOLERANCE = 0.01
"""Deviation from 1 of a sum of probabilities computed in bfloat16."""

_LOWEST = -1e300
"""Replaces -inf where it is multiplied by a probability of 0."""

_MAX_CLASSES = 1 << 15
"""Largest row that fits the registers of a GPU."""

_COLUMNS = 6
"""Packed columns beside the top classes and their probabilities."""


class PredictionScores(NamedTuple):
    """Scores of predictions, one row per image."""

    top: NDArray[np.int32]
    """The most probable classes, best first, `(images, 5 or fewer)`; ties are sorted by class number."""
    p: NDArray[np.float32]
    """Their probabilities."""
    p_label: NDArray[np.float32]
    """The total probability of the valid labels; 0 if none is among the classes."""
    nll: NDArray[np.float32]
    """Its negative logarithm."""
    brier: NDArray[np.float32]
    entropy: NDArray[np.float32]
    """In nats."""
    usable: NDArray[np.bool_]
    """Whether the logits are numbers or -inf, not all of them -inf; else the scores are undefined."""
    are_probabilities: NDArray[np.bool_]
    """Whether the logits look like probabilities: none below 0, with a sum of about 1."""


def correct(top: NDArray[Any], labels: NDArray[Any], among: int = 1) -> NDArray[np.bool_]:
    """Return whether a valid label is among the top classes.

    >>> correct(np.array([[3, 1], [2, 0]]), np.array([3, 0])).tolist()
    [True, False]

    Args:
        top: classes, best first, `(…, images, stored classes)`.
        labels: labels `(images,)`, or label sets `(images, most)` padded with -1.
        among: number of top classes to compare with.
    """
    labels = np.asarray(labels)
    labels = labels[:, None] if labels.ndim == 1 else labels
    hits = np.zeros(top.shape[:-1], np.bool_)
    for column in range(labels.shape[1]):
        hits |= np.equal(top[..., :among], labels[:, column, None]).any(axis=-1)
    return hits


def are_probabilities(logits: Any) -> Any:
    """Return whether each row of an array or a tensor looks like probabilities."""
    if isinstance(logits, np.ndarray):
        sums = logits.astype(np.float64).sum(axis=1)
        return (logits.min(axis=1, initial=np.inf) >= 0) & (abs(sums - 1) < _SUM_TOLERANCE)
    return (logits.amin(dim=1) >= 0) & ((logits.double().sum(dim=1) - 1).abs() < _SUM_TOLERANCE)


def join_scores(parts: Sequence[PredictionScores]) -> PredictionScores:
    """Concatenate the scores of several batches."""
    return parts[0] if len(parts) == 1 else PredictionScores(*map(np.concatenate, zip(*parts, strict=True)))


def score_logits(logits: NDArray[np.float32], labels: NDArray[Any]) -> PredictionScores:
    """Return the scores of float32 logits `(images, classes)`; `labels` are those of `correct`.

    A label set counts as one class whose probability is the sum of its members'.
    """
    step = max(1, _CHUNK // max(1, logits.shape[1]))
    spans = [slice(start, start + step) for start in range(0, max(1, len(logits)), step)]
    return join_scores([_score(logits[span], labels[span]) for span in spans])


def _score(logits: NDArray[np.float32], labels: NDArray[Any]) -> PredictionScores:
    highest = logits.max(axis=1, initial=-np.inf)
    usable = np.isfinite(highest)
    if not usable.all():
        logits = np.where(usable[:, None], logits, np.float32(0))
        highest = np.where(usable, highest, np.float32(0))
    probabilities = are_probabilities(logits)
    wide = logits.astype(np.float64) - highest[:, None]
    exps = np.exp(wide)
    total = exps.sum(axis=1)
    log_total = np.log(total)
    rows, classes = np.arange(len(logits)), logits.shape[1]
    top = _top_classes(logits, min(TOP, classes))
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
    return PredictionScores(
        top,
        p=(np.take_along_axis(exps, top, axis=1) / total[:, None]).astype(np.float32),
        p_label=p_label.astype(np.float32),
        nll=(-log_label).astype(np.float32),
        brier=(squares - 2 * p_label + 1).astype(np.float32),
        entropy=(log_total - np.einsum("ij,ij->i", exps, wide) / total).astype(np.float32),
        usable=usable,
        are_probabilities=probabilities,
    )


def _top_classes(logits: NDArray[np.float32], count: int) -> NDArray[np.int32]:
    """Return the classes of the largest logits of each row, by logit, then by class number.

    A pass for each class takes a tenth of the time of sorting a thousand classes.
    """
    rest, rows = logits.copy(), np.arange(len(logits))
    top = np.empty((len(logits), count), np.int32)
    for place in range(count):
        top[:, place] = best = rest.argmax(axis=1)  # the first of equal ones
        masked = np.isneginf(rest[rows, best])  # indistinguishable from classes of earlier passes
        rest[rows, best] = -np.inf
    top[masked] = np.argsort(-logits[masked], axis=1, kind="stable")[:, :count]
    return top


def score_tensor(logits: Any, labels: Any) -> Any:
    """Return the scores of `score_logits` for tensors, as one float32 tensor for `unpack_scores`.

    The host does not wait, and one copy transfers all columns. Label sets are not supported.
    """
    import torch

    from beaufort._core.device import use_kernels

    logits = logits.float().contiguous()
    classes = logits.shape[1]
    if use_kernels(logits) and classes <= _MAX_CLASSES:
        from beaufort.models._score_kernels import score_rows

        with torch.cuda.device(logits.device) if logits.is_cuda else nullcontext():
            return score_rows(logits, labels, min(TOP, classes), lowest=_LOWEST, tolerance=_SUM_TOLERANCE)
    highest = logits.amax(dim=1, keepdim=True)
    wide = logits.double() - highest
    exps = wide.exp()
    total = exps.sum(dim=1)
    log_total = total.log()
    top = _top_classes_of_tensor(logits, min(TOP, classes))
    known = (labels >= 0) & (labels < classes)
    label = labels.where(known, 0)[:, None]
    log_label = (wide.gather(1, label)[:, 0] - log_total).where(known, -torch.inf)
    p_label = log_label.exp()
    columns = (
        p_label,
        -log_label,
        exps.square().sum(dim=1) / total.square() - 2 * p_label + 1,
        log_total - (exps * wide.clamp(min=_LOWEST)).sum(dim=1) / total,
        highest.isfinite()[:, 0],
        are_probabilities(logits),
    )
    packed = torch.stack([column.float() for column in columns], dim=1)
    p = (exps.gather(1, top) / total[:, None]).float()
    return torch.cat([top.int().view(torch.float32), p, packed], dim=1)


def _top_classes_of_tensor(logits: Any, count: int) -> Any:
    """Return the classes of the largest logits, with integer keys that are never equal.

    The bits of a float32, with those below the sign inverted for negative values, are ordered as the floats;
    the lower half of a key is the class, so that ties do not depend on the device.
    """
    import torch

    bits = (logits + 0.0).view(torch.int32)  # -0 becomes 0
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long()
    classes = torch.arange(logits.shape[1] - 1, -1, -1, device=logits.device)
    return torch.topk(ordered * 2**32 + classes, count, dim=1).indices


def unpack_scores(packed: NDArray[np.float32]) -> PredictionScores:
    """Return the scores packed by `score_tensor`."""
    count = (packed.shape[1] - _COLUMNS) // 2
    top = np.ascontiguousarray(packed[:, :count]).view(np.int32)
    p = np.ascontiguousarray(packed[:, count : 2 * count])
    p_label, nll, brier, entropy, usable, probabilities = np.ascontiguousarray(packed[:, 2 * count :].T)
    return PredictionScores(top, p, p_label, nll, brier, entropy, usable > 0, probabilities > 0)

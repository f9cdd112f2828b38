"""A model's answers as a table, one row an image, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beaufort.errors import BeaufortError

__all__ = ["PredictionsError", "Summary", "predictions", "summarize", "unanswered"]

TOP = 5
"""How many classes are kept of each answer."""

Summary = dict[str, float]
"""Sums over rows, so that summaries of parts add up."""


class PredictionsError(BeaufortError, ValueError):
    """Answers that are not what they should be."""


def predictions(
    ids: Sequence[str],
    labels: Sequence[int] | NDArray[Any],
    logits: NDArray[Any],
    *,
    keep_logits: bool = False,
) -> pa.Table:
    """The table of some images' answers.

    Columns: `id`; `label`; `top`, the five most probable classes (fewer if there are fewer), and `p`, their
    probabilities; `p_label`, the probability of the true class; `nll`, `brier` and `entropy` (nats) of the
    whole distribution; `logits` if they are to be kept. A label that is not among the outputs has
    probability 0, and so an infinite `nll`.
    """
    logits = np.asarray(logits, np.float32)
    truth = np.asarray(labels, np.int64)
    if logits.ndim != 2 or not len(ids) == len(truth) == len(logits):
        raise PredictionsError(
            f"{len(ids)} ids, {len(truth)} labels and logits of shape {logits.shape} came; "
            "they must be as many, and logits (images, classes)"
        )
    if not np.isfinite(logits).all():
        bad = np.flatnonzero(~np.isfinite(logits).all(axis=1))
        raise PredictionsError(
            f"{len(bad)} images have logits that are not finite, the first is {ids[bad[0]]}"
        )
    wide = logits.astype(np.float64)
    log_p = wide - wide.max(axis=1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    p = np.exp(log_p)
    classes = logits.shape[1]
    count = min(TOP, classes)
    # By logit, then by class number: ties are broken the same way everywhere.
    top = np.argsort(-logits, axis=1, kind="stable")[:, :count]
    rows = np.arange(len(logits))
    known = (truth >= 0) & (truth < classes)
    at = np.where(known, truth, 0)
    log_label = np.where(known, log_p[rows, at], -np.inf)
    p_label = np.exp(log_label)
    columns = {
        "id": pa.array([str(i) for i in ids], pa.string()),
        "label": pa.array(truth.astype(np.int32)),
        "top": _lists(top.astype(np.int32)),
        "p": _lists(np.take_along_axis(p, top, axis=1).astype(np.float32)),
        "p_label": pa.array(p_label.astype(np.float32)),
        "nll": pa.array((-log_label).astype(np.float32)),
        "brier": pa.array(((p**2).sum(axis=1) - 2 * p_label + 1).astype(np.float32)),
        "entropy": pa.array(-(p * log_p).sum(axis=1).astype(np.float32)),
    }
    if keep_logits:
        columns["logits"] = _lists(logits)
    return pa.table(columns)


def _lists(values: NDArray[Any]) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def unanswered(ids: Sequence[str], labels: Sequence[int] | NDArray[Any], like: pa.Schema) -> pa.Table:
    """Rows of images that could not be read: everything but id and label is null."""
    nulls = {field.name: pa.nulls(len(ids), field.type) for field in like}
    nulls["id"] = pa.array([str(i) for i in ids], pa.string())
    nulls["label"] = pa.array(np.asarray(labels, np.int32))
    return pa.table(nulls, schema=like)


def summarize(table: pa.Table) -> Summary:
    """What the rows add up to: counts and sums that leaderboards are made of; rows without answer apart."""
    unread = table["top"].null_count
    table = table.filter(table["top"].is_valid())
    top: Any = table["top"].combine_chunks()
    shares: Any = table["p"].combine_chunks()
    width = top.type.list_size
    classes = np.asarray(top.flatten()).reshape(len(table), width)
    label = np.asarray(table["label"])[:, None]
    hits = classes == label
    return {
        "rows": float(len(table)),
        "unread": float(unread),
        "correct": float(hits[:, :1].sum()),
        "correct5": float(hits.any(axis=1).sum()),
        "nll": float(np.asarray(table["nll"], dtype=np.float64).sum()),
        "brier": float(np.asarray(table["brier"], dtype=np.float64).sum()),
        "entropy": float(np.asarray(table["entropy"], dtype=np.float64).sum()),
        "confidence": float(np.asarray(shares.flatten(), dtype=np.float64)[::width].sum()),
    }

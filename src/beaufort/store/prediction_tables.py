"""A model's answers as a table, one row an image, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beaufort._core.errors import BeaufortError
from beaufort._core.text import counted
from beaufort.models.scoring import PredictionScores, correct, score_logits
from beaufort.store.columns import column_of, numbers_of, text_column

Summary = dict[str, float]
"""Sums over rows, so that summaries of parts add up."""


class PredictionsError(BeaufortError, ValueError):
    """Answers of the wrong shape or type, or without a usable number."""


def predictions(
    ids: Sequence[str],
    labels: Sequence[int] | NDArray[Any],
    logits: NDArray[Any],
    *,
    keep_logits: bool = False,
    truth: NDArray[Any] | None = None,
) -> pa.Table:
    """The table of some images' answers.

    Columns: `id`; `label`; `top`, the five most probable classes (fewer if there are fewer), and `p`, their
    probabilities; `p_label`, the probability of the true class; `nll`, `brier` and `entropy` (nats) of the
    whole distribution; `logits` if they are to be kept; `truth`, the classes that are right for an image,
    filled up with -1, where that is not `label` alone. A logit of -inf stands for a class that cannot be. A
    label of such a class, or of none of the outputs, has probability 0, and so an infinite `nll`.
    """
    logits = np.asarray(logits, np.float32)
    single = np.asarray(labels, np.int64)
    if logits.ndim != 2 or not len(ids) == len(single) == len(logits):
        raise PredictionsError(
            "ids, labels and logits must be as many, and logits of shape (images, classes), got "
            f"{len(ids)} ids, {len(single)} labels and logits of shape {logits.shape}"
        )
    scores = score_logits(logits, single if truth is None else truth)
    return table_of(ids, single, scores, logits if keep_logits else None, truth)


def table_of(
    ids: Sequence[str],
    labels: NDArray[Any],
    scores: PredictionScores,
    logits: NDArray[np.float32] | None = None,
    truth: NDArray[Any] | None = None,
) -> pa.Table:
    """The table of answers that are scored already."""
    if not scores.usable.all():
        bad = np.flatnonzero(~scores.usable)
        raise PredictionsError(
            "logits must be numbers, or -inf for classes that cannot be, with at least one number an image; "
            f"those of {counted(len(bad), 'image')} are not finite, the first is {ids[bad[0]]}"
        )
    columns = {
        "id": text_column(map(str, ids)),
        "label": column_of(labels.astype(np.int32)),
        "top": _lists(scores.top),
        "p": _lists(scores.p),
        "p_label": column_of(scores.p_label),
        "nll": column_of(scores.nll),
        "brier": column_of(scores.brier),
        "entropy": column_of(scores.entropy),
    }
    if logits is not None:
        columns["logits"] = _lists(logits)
    if truth is not None:
        columns["truth"] = _lists(truth.astype(np.int32))
    return pa.table(columns)


def _lists(values: NDArray[Any]) -> Any:
    return pa.FixedSizeListArray.from_arrays(column_of(values.ravel()), values.shape[1])


def without_prediction(
    ids: Sequence[str],
    labels: Sequence[int] | NDArray[Any],
    like: pa.Schema,
    truth: NDArray[Any] | None = None,
) -> pa.Table:
    """Rows of images that could not be read: everything but id and what is true is null."""
    nulls = {field.name: pa.nulls(len(ids), field.type) for field in like}
    nulls["id"] = text_column(map(str, ids))
    nulls["label"] = column_of(np.asarray(labels, np.int32))
    if truth is not None:
        nulls["truth"] = _lists(truth.astype(np.int32))
    return pa.table(nulls, schema=like)


def truth_of(table: pa.Table) -> NDArray[np.int32]:
    """The right label of each row, or a row of right labels, as `correct` takes them."""
    if "truth" not in table.column_names:
        return np.asarray(numbers_of(table["label"]), np.int32)
    column: Any = table["truth"].combine_chunks()
    return np.asarray(numbers_of(column.flatten()), np.int32).reshape(len(table), -1)


def with_prediction(table: pa.Table) -> pa.Table:
    """The rows that have an answer: images that could not be read have none."""
    top = table["top"]
    return table.filter(top.is_valid()) if top.null_count else table


def labeled(table: pa.Table) -> NDArray[np.bool_]:
    """Which rows have a truth: images whose set of labels is empty have none."""
    truth = truth_of(table)
    found: NDArray[np.bool_] = np.any(truth >= 0, axis=1) if truth.ndim > 1 else np.ones(len(table), np.bool_)
    return found


def with_label(table: pa.Table) -> pa.Table:
    """The rows that have a truth."""
    known = labeled(table)
    return table if known.all() else table.filter(column_of(known))


def _sum(column: Any) -> float:
    return float(np.asarray(numbers_of(column), np.float64).sum())


def summarize(table: pa.Table) -> Summary:
    """Counts and sums over the rows, from which leaderboards are computed.

    Rows that do not count are told apart as `unread`: those without an answer, and those without a truth.
    """
    every = len(table)
    table = with_label(with_prediction(table))
    top: Any = table["top"].combine_chunks()
    shares: Any = table["p"].combine_chunks()
    width = top.type.list_size
    classes = numbers_of(top.flatten()).reshape(len(table), width)
    label = truth_of(table)
    return {
        "rows": float(len(table)),
        "unread": float(every - len(table)),
        "correct": float(correct(classes, label).sum()),
        "correct5": float(correct(classes, label, among=5).sum()),
        "nll": _sum(table["nll"]),
        "brier": _sum(table["brier"]),
        "entropy": _sum(table["entropy"]),
        "confidence": float(numbers_of(shares.flatten())[::width].sum(dtype=np.float64)),
    }

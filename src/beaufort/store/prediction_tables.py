"""Tables of predictions, one row per image, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beaufort._core.errors import BeaufortError
from beaufort._core.text import counted
from beaufort.models.scoring import PredictionScores, correct
from beaufort.store.columns import column_of, numbers_of, text_column

Summary = dict[str, float]
"""Sums over rows; summaries of parts can be added."""


class PredictionsError(BeaufortError, ValueError):
    """Logits of the wrong shape, or without a usable number."""


def table_of(
    ids: Sequence[str],
    labels: NDArray[Any],
    scores: PredictionScores,
    logits: NDArray[np.float32] | None = None,
    label_sets: NDArray[Any] | None = None,
) -> pa.Table:
    """Return the table of scored predictions.

    Columns: `id`; `label`; `top`, the five most probable classes (fewer if there are fewer), and `p`, their
    probabilities; `p_label`, the probability of the true class; `nll`, `brier` and `entropy` (in nats);
    `logits` if given; `label_set`, the valid classes padded with -1, if an image can have several. A label
    without an output has probability 0 and infinite `nll`.
    """
    if not scores.usable.all():
        bad = np.flatnonzero(~scores.usable)
        raise PredictionsError(
            f"the logits of {counted(len(bad), 'image')} are not finite, the first is {ids[bad[0]]}; logits "
            "must be numbers, or -inf for impossible classes, with at least one number per image"
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
    if label_sets is not None:
        columns["label_set"] = _lists(label_sets.astype(np.int32))
    return pa.table(columns)


def _lists(values: NDArray[Any]) -> Any:
    return pa.FixedSizeListArray.from_arrays(column_of(values.ravel()), values.shape[1])


def without_prediction(
    ids: Sequence[str],
    labels: Sequence[int] | NDArray[Any],
    like: pa.Schema,
    label_sets: NDArray[Any] | None = None,
) -> pa.Table:
    """Return rows for images that could not be read: all columns except id and labels are null."""
    nulls = {field.name: pa.nulls(len(ids), field.type) for field in like}
    nulls["id"] = text_column(map(str, ids))
    nulls["label"] = column_of(np.asarray(labels, np.int32))
    if label_sets is not None:
        nulls["label_set"] = _lists(label_sets.astype(np.int32))
    return pa.table(nulls, schema=like)


def labels_of(table: pa.Table) -> NDArray[np.int32]:
    """Return the label, or the row of valid labels, of each row, as `correct` takes them."""
    if "label_set" not in table.column_names:
        return np.asarray(numbers_of(table["label"]), np.int32)
    column: Any = table["label_set"].combine_chunks()
    return np.asarray(numbers_of(column.flatten()), np.int32).reshape(len(table), -1)


def with_prediction(table: pa.Table) -> pa.Table:
    """Return the rows with a prediction; images that could not be read have none."""
    top = table["top"]
    return table.filter(top.is_valid()) if top.null_count else table


def labeled(table: pa.Table) -> NDArray[np.bool_]:
    """Return which rows have a label; images with an empty label set have none."""
    labels = labels_of(table)
    found: NDArray[np.bool_] = (
        np.any(labels >= 0, axis=1) if labels.ndim > 1 else np.ones(len(table), np.bool_)
    )
    return found


def with_label(table: pa.Table) -> pa.Table:
    """Return the rows with a label."""
    known = labeled(table)
    return table if known.all() else table.filter(column_of(known))


def _sum(column: Any) -> float:
    return float(np.asarray(numbers_of(column), np.float64).sum())


def summarize(table: pa.Table) -> Summary:
    """Return counts and sums over the rows.

    Rows without a prediction or without a label are counted as `unread` and are not part of the sums.
    """
    every = len(table)
    table = with_label(with_prediction(table))
    top: Any = table["top"].combine_chunks()
    probabilities: Any = table["p"].combine_chunks()
    width = top.type.list_size
    classes = numbers_of(top.flatten()).reshape(len(table), width)
    label = labels_of(table)
    return {
        "rows": float(len(table)),
        "unread": float(every - len(table)),
        "correct": float(correct(classes, label).sum()),
        "correct5": float(correct(classes, label, among=5).sum()),
        "nll": _sum(table["nll"]),
        "brier": _sum(table["brier"]),
        "entropy": _sum(table["entropy"]),
        "confidence": float(numbers_of(probabilities.flatten())[::width].sum(dtype=np.float64)),
    }

"""What came of a run, as a data frame and as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaufort._core.pages import render_table
from beaufort.metrics.stats import clopper_pearson
from beaufort.results.score_tables import data_frame

if TYPE_CHECKING:
    import pandas as pd

    from beaufort.evaluation.run import Evaluation, Result


def evaluation_frame(evaluation: Evaluation) -> pd.DataFrame:
    """A row for each model and condition; `low` and `high` are the ends of 95 % intervals."""
    intervals = [
        clopper_pearson(one.correct, one.images) if one.images else None for one in evaluation.results
    ]
    names = ("model", "condition", "images", "correct", "unread", "accuracy")
    columns = {name: [getattr(one, name) for one in evaluation.results] for name in names}
    columns["low"] = [None if one is None else one.low for one in intervals]
    columns["high"] = [None if one is None else one.high for one in intervals]
    columns["labels"] = [one.labels for one in evaluation.results]
    return data_frame(columns)


def evaluation_html(evaluation: Evaluation) -> str:
    """The headline numbers of a suite; accuracies under each condition if there is none."""
    if evaluation.answers and all(one.images for one in evaluation.results):
        return "".join(one._repr_html_() for one in evaluation.part_scores(calibration=False))
    return render_table(
        "Accuracy, in brackets 95 % intervals",
        ["Model", "Condition", "Images", "Accuracy"],
        [[one.model, one.condition, f"{one.images:,}", _accuracy(one)] for one in evaluation.results],
        evaluation.notes,
    )


def _accuracy(result: Result) -> str:
    return f"{clopper_pearson(result.correct, result.images):.1%}" if result.images else "–"

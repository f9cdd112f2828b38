"""Why 15 of 31: which corruptions break the same digits, and what training on one does for another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import csv_text
from beaufort.report.drawing import Drawing, diverging

if TYPE_CHECKING:
    from beaufort.studies.mnist_c import MnistResults

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Selection:
    """Square tables over the corruptions, ordered so that similar ones are neighbors."""

    names: tuple[str, ...]
    benchmark: tuple[str, ...]
    failures: Matrix
    """Correlation over digits between Conv1's errors under two corruptions."""
    transfer: Matrix
    """Points of accuracy under the column's corruption gained by training on the row's."""
    accuracy: Matrix
    """Accuracy under the column's corruption after training on the row's."""


def selection(results: MnistResults) -> Selection | None:
    """Return the tables over the corruptions that Conv1 was tuned on; None for fewer than three."""
    conv1 = results.models.get("conv1", ())
    names = [
        name
        for name in (*results.settings.corruptions, *results.settings.extra)
        if f"single-{name}" in results.tuned and conv1 and name in conv1[0].conditions
    ]
    if len(names) < 3:
        return None
    wrong = np.stack([np.stack([~one.row(name) for one in conv1]).mean(axis=0) for name in names])
    before = 1 - wrong.mean(axis=1)
    tuned = [results.tuned[f"single-{name}"] for name in names]
    after = np.array([[np.mean([one.row(name).mean() for one in runs]) for name in names] for runs in tuned])
    failures = _correlation(wrong)
    order = order_by_similarity(failures)
    places = np.ix_(order, order)
    return Selection(
        tuple(names[place] for place in order),
        results.settings.corruptions,
        failures[places],
        100 * (after - before)[places],
        after[places],
    )


def _correlation(rows: Matrix) -> Matrix:
    """Return Pearson's correlation of rows; a constant row is correlated only with itself."""
    centered = rows - rows.mean(axis=1, keepdims=True)
    norm = np.sqrt((centered**2).sum(axis=1))
    scale = np.outer(norm, norm)
    correlation = np.divide(centered @ centered.T, scale, out=np.zeros_like(scale), where=scale > 0)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def order_by_similarity(similarity: Matrix) -> list[int]:
    """Return the order of leaves in a tree that joins the groups with the highest mean similarity.

    >>> order_by_similarity(np.array([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]]))
    [1, 0, 2]
    """
    groups = [[place] for place in range(len(similarity))]
    while len(groups) > 1:
        first, second = max(
            combinations(range(len(groups)), 2),
            key=lambda pair: float(similarity[np.ix_(groups[pair[0]], groups[pair[1]])].mean()),
        )
        joined = groups[first] + groups[second]
        groups = [group for place, group in enumerate(groups) if place not in (first, second)] + [joined]
    return groups[0]


def matrix_csv(names: Sequence[str], corner: str, values: Matrix, digits: int) -> str:
    """Return a square table."""
    rows = zip(names, values, strict=True)
    return csv_text(
        [corner, *names], ([name, *(f"{value:.{digits}f}" for value in row)] for name, row in rows)
    )


_CELL, _LEFT, _TOP, _GAP = 15, 130, 130, 60


def draw_selection(chosen: Selection) -> Drawing:
    """Draw failures and transfer: red is similarity or gain; the benchmark's names are bold."""
    side = _CELL * len(chosen.names)
    drawing = Drawing(2 * (_LEFT + side) + _GAP, _TOP + side + 30)
    _draw_square(drawing, _LEFT, chosen, chosen.failures, "wrong on the same digits (correlation)", 1.0)
    most = float(np.abs(chosen.transfer).max()) or 1.0
    title = f"points gained on the column by training on the row (±{most:.0f})"
    _draw_square(drawing, 2 * _LEFT + side + _GAP, chosen, chosen.transfer, title, most)
    return drawing


def _draw_square(
    drawing: Drawing, left: float, chosen: Selection, values: Matrix, title: str, most: float
) -> None:
    for place, name in enumerate(chosen.names):
        bold, label = name in chosen.benchmark, name.replace("_", " ")
        middle = _TOP + _CELL * place + 11
        drawing.text((left - 5, middle), label, size=9, anchor="end", bold=bold)
        drawing.text((left + _CELL * place + 11, _TOP - 5), label, size=9, upward=True, bold=bold)
        for column, value in enumerate(values[place]):
            at = left + _CELL * column, _TOP + _CELL * place
            drawing.box(at, (_CELL - 1, _CELL - 1), diverging(value / most))
    drawing.text((left, _TOP + _CELL * len(chosen.names) + 18), title, size=11)

"""Grids as CSV files: a column for each setting, or a row for each accuracy with its provenance."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from beaufort._core.files import write_output
from beaufort.testbed.grid import Grid, Score

_METHOD = ("n", "classes", "convention", "preprocessing")
_ORIGIN = ("fingerprint", "date", "source", "differences")


def write_grid(grid: Grid, path: Path | str) -> None:
    """Write `model`, `type`, `used_for_fit` and a column in percent for each setting, for `load_grid`."""
    columns = [grid.values[name].tolist() for name in grid.settings]
    rows = (
        (model, kind, int(fitted), *("" if np.isnan(value) else value for value in values))
        for model, kind, fitted, *values in zip(grid.models, grid.types, grid.fitted, *columns, strict=True)
    )
    _write(path, ("model", "type", "used_for_fit", *grid.settings), rows)


def write_cells(grid: Grid, path: Path | str) -> None:
    """Write a row for each accuracy, with the number of images and its provenance; `load_grid` reads it."""
    header = ("model", "type", "used_for_fit", "setting", "accuracy", *_METHOD, *_ORIGIN)
    _write(path, header, ([*facts, *row] for facts, row in _cells(grid)))


def _cells(grid: Grid) -> Iterable[tuple[Sequence[Any], Sequence[Any]]]:
    for model, kind, fitted in zip(grid.models, grid.types, grid.fitted, strict=True):
        for one in grid.scores(model):
            yield (model, kind, int(fitted)), _row(one)


def _row(one: Score) -> Sequence[Any]:
    method = one.images, one.classes, one.convention, one.preprocessing
    origin = one.fingerprint, one.date, one.source, "; ".join(one.differences)
    return one.setting, one.accuracy, *("" if value is None else value for value in (*method, *origin))


def _write(path: Path | str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_output(Path(path), text.getvalue().encode())

"""The accuracies of one model of your own, from a CSV file or a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beaufort.errors import OptionError, UnknownNameError
from beaufort.registry import unknown
from beaufort.testbed._csv import number, read_rows
from beaufort.testbed.grid import Grid

__all__ = ["Score", "read_scores", "scores_of_store"]

CONVENTIONS = ("all", "subset")


@dataclass(frozen=True)
class Score:
    """One accuracy."""

    setting: str
    accuracy: float
    """In percent."""
    images: int | None = None
    """Images that it rests on; the reference's number is taken if None."""
    convention: str | None = None
    """`all` classes could be answered, or only those of the data set's `subset`; not told if None."""
    preprocessing: str | None = None
    """`own`: the model's own resize and crop; anything else is told apart from the reference's."""


def read_scores(path: Path | str) -> tuple[Score, ...]:
    """Scores from a CSV file: `setting`, `accuracy`, and, if there, `n`, `convention`, `preprocessing`."""
    rows = read_rows(Path(path), ["setting", "accuracy"])
    made = []
    for row in rows:
        name = row["setting"]
        accuracy = number(row["accuracy"], f"the accuracy on {name!r} in {path}")
        if not 0 <= accuracy <= 100:
            raise OptionError(
                f"the accuracy on {name!r} must be a percentage from 0 to 100, "
                f"got {row['accuracy'] or 'none'}"
            )
        images = number(row.get("n", ""), f"n of {name!r} in {path}")
        if not np.isnan(images) and (images < 1 or images != int(images)):
            raise OptionError(f"n of {name!r} must be a positive integer, got {row['n']}")
        convention = row.get("convention") or None
        if convention not in {None, *CONVENTIONS}:
            raise OptionError(
                f"the convention of {name!r} must be {' or '.join(CONVENTIONS)}, got {convention!r}"
            )
        size = None if np.isnan(images) else int(images)
        made.append(Score(name, accuracy, size, convention, row.get("preprocessing") or None))
    names = [one.setting for one in made]
    if twice := [name for name in names if names.count(name) > 1]:
        raise OptionError(f"settings must be distinct, got {twice[0]!r} twice in {path}")
    return tuple(made)


def scores_of_store(store: Path | str, model: str | None, reference: Grid) -> tuple[Score, ...]:
    """A stored model's accuracies, under the names that a reference grid has for them.

    Corruptions made by Beaufort count as the testbed's in-memory ones; for a leaderboard they are averaged.
    """
    from beaufort.testbed._from_store import CLEAN, grid_of_store

    grid = grid_of_store(Path(store))
    if model is None and len(grid.models) > 1:
        raise OptionError(f"{store} has {len(grid.models)} models; name one with --model")
    name = grid.models[0] if model is None else model
    if name not in grid.place_of:
        raise UnknownNameError(unknown(f"model of {store}", name, dict.fromkeys(grid.models)))
    row = grid.place_of[name]
    values = {setting: float(column[row]) for setting, column in grid.values.items()}
    sizes = {setting: one.images for setting, one in grid.settings.items()}
    if reference.name.startswith("robustbench-"):
        corrupted = [value for setting, value in values.items() if setting != CLEAN]
        found: Mapping[str, float] = {"corruptions": float(np.mean(corrupted))} if corrupted else {}
        found = {**found, **({CLEAN: values[CLEAN]} if CLEAN in values else {})}
        least = min(size for size in sizes.values() if size is not None)
        return tuple(Score(setting, value, least) for setting, value in found.items())
    return tuple(Score(_testbed_name(setting), value, sizes[setting]) for setting, value in values.items())


def _testbed_name(setting: str) -> str:
    if setting == "clean":
        return "val"
    corruption, _, severity = setting.partition("@")
    return f"imagenet-c.{corruption}.{severity}_in-memory"

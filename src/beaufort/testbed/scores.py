"""The accuracies of one model of your own, and how they come from a CSV file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.testbed._csv import number, read_rows
from beaufort.testbed.grid import Grid
from beaufort.testbed.settings import Setting

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
    differences: tuple[str, ...] = ()
    """What else is known to differ from the reference's, each a clause."""


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


def own_settings(grid: Grid, scores: Sequence[Score]) -> list[tuple[Setting, Score]]:
    """The scores that a grid has a setting for, with that setting; at least one must."""
    found = []
    for score in scores:
        with suppress(UnknownNameError):
            found.append((grid.setting(score.setting), score))
    if not found:
        named = ", ".join(one.setting for one in scores) or "none"
        raise OptionError(f"scores must have a setting of the grid {grid.name}, got {named}")
    return found

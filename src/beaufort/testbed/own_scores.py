"""The accuracies of a model that is not in a grid, under the names of its settings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.validation import validate_unique
from beaufort.testbed.grid import Grid, Setting
from beaufort.testbed.grid_files import parse_number, read_rows

CONVENTIONS = ("all", "subset")


@dataclass(frozen=True)
class Score:
    """An accuracy of a model under a setting."""

    setting: str
    accuracy: float
    """In percent."""
    images: int | None = None
    """Number of images; that of the reference if None."""
    convention: str | None = None
    """Whether predictions are among `all` classes or those of the dataset's `subset`; None if unknown."""
    preprocessing: str | None = None
    """`own` for the model's own resize and crop; anything else differs from the reference."""
    differences: tuple[str, ...] = ()
    """Other known differences from the reference, each a clause."""
    measured: bool = False
    """Whether the accuracy is computed from predictions, so that it is known to be a percentage."""


def read_scores(path: Path | str) -> tuple[Score, ...]:
    """Read scores from a CSV file: `setting`, `accuracy`, optionally `n`, `convention`, `preprocessing`."""
    scores = []
    for row in read_rows(Path(path), ["setting", "accuracy"]):
        name = row["setting"]
        accuracy = parse_number(row["accuracy"], f"the accuracy on {name!r} in {path}")
        if not 0 <= accuracy <= 100:
            given = row["accuracy"] or "none"
            raise OptionError(f"the accuracy on {name!r} must be a percentage from 0 to 100, got {given}")
        images = parse_number(row.get("n", ""), f"n of {name!r} in {path}")
        if not np.isnan(images) and (images < 1 or images != int(images)):
            raise OptionError(f"n of {name!r} must be a positive integer, got {row['n']}")
        convention = row.get("convention") or None
        if convention not in {None, *CONVENTIONS}:
            raise OptionError(
                f"convention of {name!r} must be {' or '.join(CONVENTIONS)}, got {convention!r}"
            )
        size = None if np.isnan(images) else int(images)
        scores.append(Score(name, accuracy, size, convention, row.get("preprocessing") or None))
    validate_unique(f"settings in {path}", [one.setting for one in scores])
    return tuple(scores)


def own_settings(grid: Grid, scores: Sequence[Score]) -> list[tuple[Setting, Score]]:
    """Return the scores that a grid has a setting for, with the setting; an error if there are none."""
    matched = []
    for score in scores:
        with suppress(UnknownNameError):
            matched.append((grid.setting(score.setting), score))
    if not matched:
        names = ", ".join(one.setting for one in scores) or "none"
        raise OptionError(f"scores must have a setting of the grid {grid.name}, got {names}")
    return matched

"""The accuracies of a model that is not in a grid, under the names of its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_unique
from beaufort.testbed.grid import Score, Setting
from beaufort.testbed.grid_files import parse_number, read_rows

CONVENTIONS = ("all", "subset")


def read_scores(path: Path | str) -> tuple[Score, ...]:
    """Read scores from a CSV file: `setting`, `accuracy`, optionally `n`, `convention`, `preprocessing`, …"""
    scores = parse_scores(read_rows(Path(path), ["setting", "accuracy"]), Path(path))
    validate_unique(f"settings in {path}", [one.setting for one in scores])
    return scores


def parse_scores(rows: Sequence[Mapping[str, str]], path: Path) -> tuple[Score, ...]:
    """Return the scores in the rows of a CSV file."""
    scores = []
    for row in rows:
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
        further: dict[str, Any] = {
            key: row.get(key, "") for key in ("classes", "fingerprint", "date", "source")
        }
        further["measured"] = bool(further["fingerprint"])
        further["differences"] = tuple(filter(None, row.get("differences", "").split("; ")))
        scores.append(Score(name, accuracy, size, convention, row.get("preprocessing") or None, **further))
    return tuple(scores)


def difference_warnings(scored: Iterable[tuple[Setting, Score]]) -> list[str]:
    """Return how some accuracies were measured unlike those of the reference, each difference once."""
    settings: dict[str, list[str]] = {}
    for setting, score in scored:
        for difference in _differences(setting, score):
            names = settings.setdefault(difference, [])
            if setting.name not in names:
                names.append(setting.name)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {difference}"
        for difference, names in settings.items()
    ]


def _differences(setting: Setting, score: Score) -> list[str]:
    found = list(score.differences)
    among = {"subset": f"the classes of {setting.classes}", "all": "all classes"}[setting.convention]
    if score.convention is None and setting.classes:
        found.append(f"predictions of the reference are among {among}; the scores do not state a convention")
    elif score.convention is not None and score.convention != setting.convention:
        found.append(
            f"predictions of the reference are among {among}, but the scores state {score.convention!r}: the "
            "two are not comparable"
        )
    if score.preprocessing not in {None, "own"}:
        found.append(
            "the reference uses each model's own resize and crop, but the scores state "
            f"{score.preprocessing!r}"
        )
    larger = setting.images is not None and (score.images or 0) > setting.images
    if larger and not setting.members:
        found.append(f"n is {score.images:,}, but the reference's test set has {setting.images:,} images")
    return found

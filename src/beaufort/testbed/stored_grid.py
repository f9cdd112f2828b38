"""A grid from the answers of a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

import numpy as np

from beaufort.results import Results, open_parts
from beaufort.suites.conditions import Condition
from beaufort.testbed.grid import Grid, Setting

CLEAN = "clean"


def grid_of_store(store: str | Path) -> Grid:
    """The models of a store that answered all conditions of its last suite, or of a data set of that.

    Settings are called as conditions are, without the data set: `clean`, `fog@3`. In a suite of several data
    sets each is a setting of its name, compared with its counterpart, and what was done to its images one of
    `photos/fog@3`. The trend is fitted on all models, because a store does not know which are standard.
    """
    parts = open_parts(store)
    models = tuple(dict.fromkeys(model for part in parts for model in part.models))
    settings: dict[str, Setting] = {}
    columns: dict[str, list[float]] = {}
    for part in parts:
        for setting, shares in _settings(part, {other.suite.name for other in parts}):
            settings[setting.name] = setting
            columns[setting.name] = [100 * shares.get(model, np.nan) for model in models]
    about = parts[0].part_of or f"{parts[0].suite} on {parts[0].dataset}"
    return Grid(
        PurePath(store).name,
        models,
        {name: np.array(values) for name, values in columns.items()},
        settings,
        ("UNKNOWN",) * len(models),
        np.ones(len(models), bool),
        "all models, because a store does not say which are standard",
        {"not-standard": np.ones(len(models), bool)},
        facts={"source": f"a store; {about}"},
    )


def _settings(part: Results, parts: set[str]) -> Iterator[tuple[Setting, dict[str, float]]]:
    """Each setting of a data set, with the share of right answers of its models."""
    answers = {model: part.predictions(model) for model in part.models}
    images = min(len(one) for one in answers.values())
    counterpart = part.suite.counterpart if part.suite.counterpart in parts else None
    conditions = next(iter(answers.values())).conditions
    has_clean = any(condition.clean for condition in conditions)
    clean = (part.suite.name if part.part_of else CLEAN) if has_clean else None
    for condition in conditions:
        shares = {
            model: float(one.correct[one.conditions.index(condition)].mean())
            for model, one in answers.items()
        }
        if clean is not None and condition.clean:
            kind, group = ("natural", "dataset_shift") if counterpart else ("standard", "s1")
            yield Setting(clean, kind, group, images=images, clean=counterpart), shares
        else:
            yield _shift(part, condition, images, clean or counterpart), shares


def _shift(part: Results, condition: Condition, images: int, clean: str | None) -> Setting:
    name = str(condition).partition("/")[2]
    name = f"{part.suite.name}/{name}" if part.part_of else name
    corruption, _, severity = name.partition("@")
    return Setting(
        name,
        "synthetic",
        "corruption",
        corruption,
        int(severity) if severity.isdigit() else None,
        "on-disk" if part.stored else "in-memory",
        images,
        clean=clean,
    )

"""A grid from the answers of a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from beaufort.results import open_results
from beaufort.testbed.grid import Grid
from beaufort.testbed.settings import Setting

__all__ = ["CLEAN", "grid_of_store"]

CLEAN = "clean"


def grid_of_store(store: Path) -> Grid:
    """The models of a store that answered all conditions of its last suite.

    Settings are called as conditions are, without the data set: `clean`, `fog@3`. The trend is fitted on
    all models, because a store does not know which are standard.
    """
    results = open_results(store)
    columns: dict[str, list[float]] = {}
    sizes: dict[str, set[int]] = {}
    for model in results.models:
        answers = results.answers(model)
        for condition, share in zip(answers.conditions, answers.correct.mean(axis=1), strict=True):
            name = str(condition).partition("/")[2] or CLEAN
            columns.setdefault(name, []).append(100 * float(share))
            sizes.setdefault(name, set()).add(len(answers))
    settings = {name: _setting(name, min(sizes[name]), CLEAN in columns) for name in columns}
    count = len(results.models)
    return Grid(
        store.name,
        results.models,
        {name: np.array(values) for name, values in columns.items()},
        settings,
        ("UNKNOWN",) * count,
        np.ones(count, bool),
        "all models, because a store does not say which are standard",
        {"not-standard": np.ones(count, bool)},
        facts={"source": f"a store; {results.suite} on {results.dataset}"},
    )


def _setting(name: str, images: int, has_clean: bool) -> Setting:
    if name == CLEAN:
        return Setting(name, "standard", "s1", images=images)
    corruption, _, severity = name.partition("@")
    return Setting(
        name,
        "synthetic",
        "corruption",
        corruption,
        int(severity) if severity.isdigit() else None,
        "in-memory",
        images,
        clean=CLEAN if has_clean else None,
    )

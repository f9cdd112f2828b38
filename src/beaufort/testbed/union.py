"""Several grids as one: the models of all, with the provenance of each accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.text import counted
from beaufort._core.validation import validate_unique
from beaufort.testbed.correlation import NOT_STANDARD
from beaufort.testbed.grid import Grid
from beaufort.testbed.own_scores import difference_warnings

Mask = NDArray[np.bool_]

_OTHER_CLASSES = (
    "standard accuracies on the classes of ObjectNet are among 125 classes in paper, and among 113 in latest"
)


def unite(grids: Sequence[Grid]) -> Grid:
    """Return one grid of the models of several, with all settings that at least one of them has.

    The first grid that has an accuracy provides it, and the trend is fitted on the models of the first grid.
    Differences in the measurement, and accuracies that contradict those of an earlier grid, are a caveat.

    Args:
        grids: from `load_grid`; those after the first have its names of settings, see `renamed`.
    """
    first = grids[0]
    validate_unique("names of united grids", [grid.name for grid in grids])
    models = tuple(dict.fromkeys(name for grid in grids for name in grid.models))
    row_of = {name: row for row, name in enumerate(models)}
    order = dict.fromkeys(name for grid in grids for name in grid.settings)
    settings = {  # a mean of one grid may be a column of another
        name: replace(one, members=())
        for grid in reversed(grids)
        for name, one in (*grid.aggregates.items(), *grid.settings.items())
        if name in order
    }
    values = {name: np.full(len(models), np.nan) for name in order}
    caveats = []
    for grid in grids:
        rows = np.array([row_of[name] for name in grid.models])
        contradicted: dict[str, int] = {}
        for name in (name for name in order if name in grid.settings or name in grid.aggregates):
            before, own = values[name][rows], grid.column(name)
            for row in np.flatnonzero(np.abs(before - own) > 1e-9):
                contradicted[grid.models[row]] = contradicted.get(grid.models[row], 0) + 1
            values[name][rows] = np.where(np.isnan(before), own, before)
        if contradicted:
            count, model = sum(contradicted.values()), next(iter(contradicted))
            caveats.append(
                f"{counted(count, 'accuracy', 'accuracies')} of {grid.name} differ from those of an earlier "
                f"grid and are not used (first: {model}); rename the model to keep both"
            )
        pairs = ((settings[name], one) for own in grid.cells.values() for name, one in own.items())
        caveats += [f"{grid.name}: {text}" for text in difference_warnings(pairs)]
        if caveat := grid.facts.get("caveat"):
            caveats.append(f"{grid.name}: {caveat}")
    if {"paper", "latest"} <= {grid.name for grid in grids}:
        caveats.append(_OTHER_CLASSES)
    sources = (f"{grid.name}: {grid.facts.get('source', 'unknown')}" for grid in grids)
    facts = {"source": "; ".join(sources), **({"caveat": "; ".join(caveats)} if caveats else {})}
    types = ["UNKNOWN"] * len(models)
    for grid in reversed(grids):
        for name, kind in zip(grid.models, grid.types, strict=True):
            types[row_of[name]] = kind if kind != "UNKNOWN" else types[row_of[name]]
    fitted = np.zeros(len(models), bool)
    fitted[: len(first.models)] = first.fitted
    return Grid(
        "+".join(grid.name for grid in grids),
        models,
        values,
        {name: settings[name] for name in order},
        tuple(types),
        fitted,
        first.fit_rule,
        _groups(grids, models, types),
        tuple(dict.fromkeys(pair for grid in grids for pair in grid.pairs)),
        facts,
        members=tuple(grids),
    )


def _groups(grids: Sequence[Grid], models: Sequence[str], types: Sequence[str]) -> Mapping[str, Mask]:
    """Return the groups of all grids, and each grid as a group of its name."""
    members: dict[str, set[str]] = {}
    for grid in grids:
        for name, mask in grid.groups.items():
            members.setdefault(name, set()).update(grid.models[row] for row in np.flatnonzero(mask))
        members.setdefault(grid.name, set()).update(grid.models)
    found = {name: np.array([model in some for model in models]) for name, some in members.items()}
    return {**found, NOT_STANDARD: np.array([kind != "STANDARD" for kind in types])}


def renamed(grid: Grid, reference: Grid) -> Grid:
    """Return a grid whose settings have the names of a reference, such as those of short names."""
    names = {name: _name_in(reference, name) for name in grid.settings}
    if len(set(names.values())) < len(names):
        twice = next(name for name in names if list(names.values()).count(names[name]) > 1)
        raise OptionError(f"{grid.name} has two columns for the setting {names[twice]!r}, such as {twice!r}")
    return replace(
        grid,
        values={names[name]: column for name, column in grid.values.items()},
        settings={names[name]: replace(one, name=names[name]) for name, one in grid.settings.items()},
        cells={
            model: {names[name]: replace(one, setting=names[name]) for name, one in own.items()}
            for model, own in grid.cells.items()
        },
    )


def _name_in(reference: Grid, name: str) -> str:
    try:
        return reference.setting(name).name
    except UnknownNameError:
        return name

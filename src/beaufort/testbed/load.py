"""Grids by name, from a CSV file, from timm's result tables, or from a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort._core.remote import is_url
from beaufort.testbed.grid import Grid, Pair, Setting
from beaufort.testbed.grid_files import (
    TEXT_COLUMNS,
    FigureTable,
    known_settings,
    read_grid_csv,
    read_rows,
    read_table,
)
from beaufort.testbed.timm_tables import KINDS, TYPES, read_timm, training_data

Floats = NDArray[np.float64]

_LEADERBOARDS = ("cifar10", "cifar100", "imagenet")

GRIDS: Mapping[str, str] = {
    "paper": "the ImageNet testbed as published: 204 models, 213 settings (August 2020)",
    "latest": "its last update: 338 models, 213 settings (September 2021)",
    "timm": "timm's result tables: 1,556 entries, each a model at one size, on five shifts and clean images",
    **{f"robustbench-{name}": f"RobustBench's leaderboard of {name} corruptions" for name in _LEADERBOARDS},
}
"""Grids that come with the package."""


def load_grid(
    source: str | Path, *, fit_on: Sequence[str] | None = None, images: Mapping[str, int] | None = None
) -> Grid:
    """A grid of accuracies.

    Args:
        source: a name of `GRIDS`, a CSV file (a column `model` and one for each setting, in percent), a
            folder with timm's `results-*.csv`, or a store, by its folder or URL.
        fit_on: selections of the models that the trend is fitted on, as `Grid.select` takes them, or
            `all`; the grid's own rule if None.
        images: how many images the accuracies of some settings rest on, where the grid does not know it.
    """
    grid = _load(source)
    if images:
        known = {grid.setting(name).name: count for name, count in images.items()}
        sized = {
            name: replace(grid.setting(name), images=count, reduced=None) for name, count in known.items()
        }
        grid = replace(grid, settings={**grid.settings, **sized})
    if fit_on is None:
        return grid
    everyone = list(fit_on) == ["all"]
    mask = np.ones(len(grid.models), bool) if everyone else grid.select(fit_on)
    return replace(grid, fitted=mask, fit_rule="all models" if everyone else ", ".join(fit_on))


def _load(source: str | Path) -> Grid:
    if str(source) in GRIDS:
        return _packed(str(source))
    path = Path(source)
    if path.suffix.lower() == ".csv":
        if not path.is_file():
            raise OptionError(f"grid not found: {path}")
        return from_columns(path.stem, read_grid_csv(path))
    if path.is_dir() and (path / "results-imagenet.csv").is_file():
        models, columns = read_timm(path)
        return _timm(models, columns, {"source": str(path)})
    if path.is_dir() or is_url(str(source)):
        from beaufort.testbed.stored_grid import grid_of_store

        return grid_of_store(source)
    known = unknown_message("grid", str(source), GRIDS)
    raise UnknownNameError(f"{known}; a grid may also be a CSV file, a folder of timm's tables or a store")


@cache
def _packed(name: str) -> Grid:
    if name == "timm":
        table = read_table("grid-timm")
        columns = {setting: table.percent(setting) for setting in known_settings("timm")}
        return _timm(table.columns["model"], columns, table.facts)
    if name.startswith("robustbench-"):
        return _leaderboard(name, read_table("grid-robustbench"))
    table = read_table(f"grid-{name}")
    columns = {setting: table.percent(setting) for setting in table.columns if setting != "model"}
    return _testbed(name, table.columns["model"], columns, table.facts)


def _testbed(
    name: str, models: Sequence[str], columns: Mapping[str, Floats], facts: Mapping[str, str]
) -> Grid:
    """A grid of the testbed's models: their types, groups and bases are known."""
    known = {row["model"]: row for row in read_table("models").rows()}
    rows = [known.get(model, {}) for model in models]
    column = "type_paper" if name == "paper" else "type_latest"
    groups = {
        kind: np.array([row.get("category_paper") == kind for row in rows])
        for kind in ("standard", "robust", "more_data", "auxiliary")
    }
    groups["v1"] = np.array([row.get("in_v1_196") == "1" for row in rows])
    groups["resnet50-lp"] = np.array([row.get("resnet50_family_group") == "LP_ADV" for row in rows])
    groups["not-standard"] = np.array([row.get(column) != "STANDARD" for row in rows])
    present = set(models)
    pairs = tuple(
        Pair(row["model"], row["base_model"], row["intervention"], row["provenance"])
        for row in read_table("pairs").rows()
        if row["model"] in present and row["base_model"] in present
    )
    return Grid(
        name,
        tuple(models),
        dict(columns),
        _described(columns),
        tuple(row.get(column) or row.get("type_latest") or "UNKNOWN" for row in rows),
        np.array([row.get("used_for_fit") == "1" for row in rows]),
        "the testbed's 78 standard models",
        groups,
        pairs,
        facts,
    )


def _described(columns: Mapping[str, Floats]) -> dict[str, Setting]:
    known = {**known_settings("timm"), **known_settings("testbed")}
    return {name: known.get(name, Setting(name)) for name in columns}


def from_columns(name: str, sheet: Mapping[str, list[str] | list[float]]) -> Grid:
    """A grid from the columns of a CSV file: `model`, the settings, and, if there, `type` and `used_for_fit`.

    The testbed's models and settings are known by their names. The trend is fitted on the rows with
    `used_for_fit` 1; without that column on the testbed's standard models, if there are some; else on all.
    """
    words = {key: list(map(str, column)) for key, column in sheet.items() if key in TEXT_COLUMNS}
    models = words["model"]
    columns = {key: np.asarray(column, np.float64) for key, column in sheet.items() if key not in words}
    grid = _testbed(name, models, columns, {"source": "a CSV file"})
    types = tuple(words.get("type", grid.types))
    groups = {key: mask for key, mask in grid.groups.items() if mask.any()}
    groups["not-standard"] = np.array([kind != "STANDARD" for kind in types])
    fitted, rule = grid.fitted, grid.fit_rule
    if "used_for_fit" in words:
        fitted, rule = _marked(models, words["used_for_fit"]), "models whose used_for_fit is 1"
    elif "type" in words and "STANDARD" in types:
        fitted, rule = ~groups["not-standard"], "models whose type is STANDARD"
    elif not fitted.any():
        fitted = np.ones(len(models), bool)
        rule = "all models, because the file does not say which are standard"
    elif (count := int(fitted.sum())) != 78:
        rule = f"the {count} of the testbed's 78 standard models that the file has"
    facts = {**grid.facts, **_suspected(columns)}
    return replace(grid, types=types, groups=groups, fitted=fitted, fit_rule=rule, facts=facts)


def _marked(models: Sequence[str], texts: Sequence[str]) -> NDArray[np.bool_]:
    """The rows with a 1; a spreadsheet may write it as 1.0, and nothing is 0."""
    known = {"1": True, "1.0": True, "0": False, "0.0": False, "": False}
    for model, text in zip(models, texts, strict=True):
        if text not in known:
            raise OptionError(f"used_for_fit of {model!r} must be 0 or 1, got {text!r}")
    return np.array([known[text] for text in texts])


def _suspected(columns: Mapping[str, Floats]) -> dict[str, str]:
    """A caveat if all numbers may be shares; zeros alone say nothing."""
    values = np.concatenate([np.zeros(1), *columns.values()])
    if not 0 < np.nanmax(values) <= 1:
        return {}
    return {"caveat": "every accuracy is at most 1; they are read as percentages, not as shares"}


def _timm(models: Sequence[str], columns: Mapping[str, Floats], facts: Mapping[str, str]) -> Grid:
    """timm's entries; the trend is fitted on models that saw nothing but ImageNet-1k and had no teacher.

    A model at several input sizes is fitted on once, at the size with the highest accuracy, because its
    entries are not independent.
    """
    kinds = [training_data(model) for model in models]
    best: dict[str, int] = {}
    for row in np.argsort(-np.nan_to_num(columns["val"], nan=-1), kind="stable"):
        best.setdefault(models[row].rpartition("@")[0], int(row))
    once = np.isin(np.arange(len(models)), list(best.values()))
    types = tuple(TYPES[kind] for kind in kinds)
    groups = {kind: np.array([one == kind for one in kinds]) for kind in KINDS}
    groups["not-standard"] = np.array([kind != "STANDARD" for kind in types])
    return Grid(
        "timm",
        tuple(models),
        dict(columns),
        {name: setting for name, setting in known_settings("timm").items() if name in columns},
        types,
        once & groups["imagenet-1k"],
        "models trained on ImageNet-1k alone, without a teacher, each at its most accurate size",
        groups,
        (),
        facts,
    )


def _leaderboard(name: str, table: FigureTable) -> Grid:
    dataset = name.removeprefix("robustbench-")
    rows = np.array([one == dataset for one in table.columns["dataset"]])
    models = [model for model, inside in zip(table.columns["model"], rows, strict=True) if inside]
    more = [bool(one) for one, inside in zip(table.columns["more_data"], rows, strict=True) if inside]
    settings = known_settings(name)
    types = tuple(
        "MORE_DATA" if extra else "STANDARD" if model.startswith(("Standard", "AlexNet")) else "ROBUST_INTV"
        for model, extra in zip(models, more, strict=True)
    )
    facts = dict(table.facts)
    if dataset != "imagenet":
        facts["caveat"] = "the mean over 15 corruptions and 5 severities, as the leaderboard states it"
    return Grid(
        name,
        tuple(models),
        {setting: table.percent(setting)[rows] for setting in settings},
        settings,
        types,
        np.ones(len(models), bool),
        "all entries, because a leaderboard has hardly any standard models: rho is against its average entry",
        {"not-standard": np.array([kind != "STANDARD" for kind in types])},
        (),
        facts,
    )


def read_pairs(path: Path) -> tuple[Pair, ...]:
    """Models and their bases from a CSV file with `model` and `base_model`; each pair once."""
    rows = read_rows(path, ["model", "base_model"])
    counts = Counter((row["model"], row["base_model"]) for row in rows)
    for (model, base), count in counts.items():
        if model == base:
            raise OptionError(f"{path}: {model!r} is its own base model")
        if count > 1:
            raise OptionError(f"{path} has {model!r} with {base!r} {count} times")
    return tuple(
        Pair(row["model"], row["base_model"], row.get("intervention", ""), row.get("provenance", str(path)))
        for row in rows
    )

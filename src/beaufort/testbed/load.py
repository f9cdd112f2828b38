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
from beaufort.testbed.grid import Grid, Pair, Score, Setting
from beaufort.testbed.grid_files import (
    TEXT_COLUMNS,
    csv_columns,
    known_settings,
    read_grid_csv,
    read_rows,
    read_table,
)
from beaufort.testbed.own_scores import parse_scores
from beaufort.testbed.timm_tables import KINDS, TYPES, read_timm, training_data
from beaufort.testbed.union import renamed, unite

Floats = NDArray[np.float64]

GRIDS: Mapping[str, str] = {
    "paper": "the ImageNet testbed as published: 204 models, 213 settings (August 2020)",
    "latest": "its last update: 338 models, 213 settings (September 2021)",
    "timm": "timm's result tables: 1,556 entries, each a model at one size, on five shifts and clean images",
    **{
        f"robustbench-{name}": f"RobustBench's leaderboard of {name} corruptions"
        for name in ("cifar10", "cifar100", "imagenet")
    },
}
"""Grids that come with the package."""


def load_grid(
    source: str | Path, *, fit_on: Sequence[str] | None = None, images: Mapping[str, int] | None = None
) -> Grid:
    """Load a grid of accuracies.

    Args:
        source: a name of `GRIDS`, a CSV file (a column `model` and one for each setting, in percent), a
            folder with timm's `results-*.csv`, or the folder or URL of a result store. A CSV file with
            `setting` and `accuracy` has a row for each accuracy: `model` (else the name of the file), `type`,
            `used_for_fit`, and its provenance (`n`, `classes`, `convention`, `preprocessing`, `fingerprint`,
            `date`, `source`, `differences`). Several sources joined with `+` become one grid, with the trend
            of the first.
        fit_on: models that the trend is fitted on, as for `Grid.select`, or `all`; the grid's own by default.
        images: numbers of images of settings for which the grid does not know them.
    """
    grid = _load(source)
    if images:
        grid = _with_images(grid, {grid.setting(name).name: count for name, count in images.items()})
    if fit_on is None:
        return grid
    if list(fit_on) == ["all"]:
        return replace(grid, fitted=np.ones(len(grid.models), bool), fit_rule="all models")
    return replace(grid, fitted=grid.select(fit_on), fit_rule=", ".join(fit_on))


def _with_images(grid: Grid, counts: Mapping[str, int]) -> Grid:
    """Return a grid with numbers of images for settings, and for scores that do not state one."""
    settings = {
        name: replace(one, images=counts[name], reduced=None) if name in counts else one
        for name, one in grid.settings.items()
    }
    cells = {
        model: {name: replace(one, images=one.images or counts.get(name)) for name, one in own.items()}
        for model, own in grid.cells.items()
    }
    members = tuple(_with_images(member, counts) for member in grid.members)
    return replace(grid, settings=settings, cells=cells, members=members)


def _load(source: str | Path) -> Grid:
    first, *others = _split(str(source))
    grid = _load_one(first)
    added: list[Grid] = []
    for other in others:
        store = not (other in GRIDS or other.lower().endswith(".csv") or _has_timm(Path(other)))
        if store and ("val" in grid.settings or grid.name.startswith("robustbench-")):
            from beaufort.testbed.stored_accuracies import grid_of_scores

            _check_exists(other)
            found = grid_of_scores(other, grid)
        else:
            found = _load_one(other)
            if other not in GRIDS and not found.cells:  # the file states accuracies alone
                found = replace(found, cells=_cells_of(found))
        added.append(renamed(found, grid))
    return unite([grid, *added]) if added else grid


def _cells_of(grid: Grid) -> dict[str, dict[str, Score]]:
    """Return scores without a number of images."""
    return {
        model: {
            name: Score(name, float(column[row]), source=grid.name)
            for name, column in grid.values.items()
            if not np.isnan(column[row])
        }
        for model, row in grid.row_of.items()
    }


def _split(text: str) -> list[str]:
    """Return the sources that are joined with `+`, which may also be part of a path or URL.

    >>> _split("paper+timm"), _split("s3://bucket/a+b")
    (['paper', 'timm'], ['s3://bucket/a+b'])
    """
    parts = text.split("+")
    if Path(text).exists() or (is_url(parts[0]) and not all(map(_exists, parts[1:]))):
        return [text]
    return parts


def _exists(part: str) -> bool:
    return part in GRIDS or is_url(part) or (bool(part) and Path(part).exists())


def _check_exists(source: str) -> None:
    if not _exists(source):
        known = unknown_message("grid", source, GRIDS)
        raise UnknownNameError(
            f"{known}; a grid may also be a CSV file, a folder of timm's tables or a store"
        )


def _has_timm(path: Path) -> bool:
    return (path / "results-imagenet.csv").is_file()


def _load_one(source: str) -> Grid:
    if source in GRIDS:
        return _package_grid(source)
    path = Path(source)
    if path.suffix.lower() == ".csv":
        if not path.is_file():
            raise OptionError(f"grid not found: {path}")
        if {"setting", "accuracy"} <= set(csv_columns(path)):
            return from_cells(path.stem, path)
        return from_columns(path.stem, read_grid_csv(path))
    if _has_timm(path):
        models, columns = read_timm(path)
        return _timm(models, columns, {"source": str(path)})
    _check_exists(source)
    from beaufort.testbed.stored_accuracies import grid_of_store

    return grid_of_store(source)


@cache
def _package_grid(name: str) -> Grid:
    if name.startswith("robustbench-"):
        return _leaderboard(name)
    table = read_table(f"grid-{name}")
    names = known_settings("timm") if name == "timm" else [one for one in table.columns if one != "model"]
    columns = {setting: table.percent(setting) for setting in names}
    make = _timm if name == "timm" else _testbed
    return make(table.columns["model"], columns, table.facts, name)


def _testbed(
    models: Sequence[str], columns: Mapping[str, Floats], facts: Mapping[str, str], name: str
) -> Grid:
    """Return a grid of the testbed's models, with their types, groups and base models."""
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
    known_columns = {**known_settings("timm"), **known_settings("testbed")}
    return Grid(
        name,
        tuple(models),
        dict(columns),
        {name: known_columns.get(name, Setting(name)) for name in columns},
        tuple(row.get(column) or row.get("type_latest") or "UNKNOWN" for row in rows),
        np.array([row.get("used_for_fit") == "1" for row in rows]),
        "the testbed's 78 standard models",
        groups,
        tuple(
            Pair(row["model"], row["base_model"], row["intervention"], row["provenance"])
            for row in read_table("pairs").rows()
            if row["model"] in present and row["base_model"] in present
        ),
        facts,
    )


def from_columns(name: str, sheet: Mapping[str, list[str] | list[float]]) -> Grid:
    """Return a grid from the columns of a CSV file: `model`, settings, and optionally `type`, `used_for_fit`.

    Models and settings of the testbed are known by their names. The trend is fitted on the rows with
    `used_for_fit` 1; without that column on models of type STANDARD, or the testbed's standard models; else
    on all.
    """
    texts = {key: list(map(str, column)) for key, column in sheet.items() if key in TEXT_COLUMNS}
    models = texts["model"]
    columns = {key: np.asarray(column, np.float64) for key, column in sheet.items() if key not in texts}
    facts = {"source": "a CSV file"}
    if 0 < np.nanmax(np.concatenate([np.zeros(1), *columns.values()])) <= 1:  # zeros alone say nothing
        facts["caveat"] = "every accuracy is at most 1; accuracies are read as percentages, not as fractions"
    grid = _testbed(models, columns, facts, name)
    types = tuple(texts.get("type", grid.types))
    groups = {key: mask for key, mask in grid.groups.items() if mask.any()}
    groups["not-standard"] = np.array([kind != "STANDARD" for kind in types])
    fitted, rule = grid.fitted, grid.fit_rule
    if "used_for_fit" in texts:
        fitted, rule = _flags(models, texts["used_for_fit"]), "models whose used_for_fit is 1"
    elif "type" in texts and "STANDARD" in types:
        fitted, rule = ~groups["not-standard"], "models whose type is STANDARD"
    elif not fitted.any():
        fitted = np.ones(len(models), bool)
        rule = "all models, because the file does not say which are standard"
    elif (count := int(fitted.sum())) != 78:
        rule = f"the {count} of the testbed's 78 standard models that the file has"
    return replace(grid, types=types, groups=groups, fitted=fitted, fit_rule=rule)


def from_cells(name: str, path: Path) -> Grid:
    """Return a grid from a CSV file with a row for each accuracy, as `write_cells` writes it."""
    texts: dict[str, dict[str, str]] = {}
    cells: dict[str, dict[str, Score]] = {}
    rows = read_rows(path, ["setting", "accuracy"])
    for row, score in zip(rows, parse_scores(rows, path), strict=True):
        model = row.get("model") or name
        own = cells.setdefault(model, {})
        if score.setting in own:
            raise OptionError(f"{path} lists {model!r} under {score.setting!r} more than once")
        own[score.setting] = replace(score, source=score.source or name)
        for key in ("type", "used_for_fit"):
            if key in row:
                before = texts.setdefault(key, {}).setdefault(model, row[key])
                if before != row[key]:
                    raise OptionError(
                        f"{path} has two values of {key} for {model!r}: {before!r} and {row[key]!r}"
                    )
    settings = dict.fromkeys(score.setting for own in cells.values() for score in own.values())
    sheet: dict[str, list[str] | list[float]] = {"model": list(cells)}
    sheet |= {key: list(values.values()) for key, values in texts.items()}
    sheet |= {
        setting: [own[setting].accuracy if setting in own else np.nan for own in cells.values()]
        for setting in settings
    }
    return replace(from_columns(name, sheet), cells=cells)


def _flags(models: Sequence[str], texts: Sequence[str]) -> NDArray[np.bool_]:
    """Return where the text is 1; spreadsheets may write 1.0, and nothing for 0."""
    known = {"1": True, "1.0": True, "0": False, "0.0": False, "": False}
    for model, text in zip(models, texts, strict=True):
        if text not in known:
            raise OptionError(f"used_for_fit of {model!r} must be 0 or 1, got {text!r}")
    return np.array([known[text] for text in texts])


def _timm(
    models: Sequence[str], columns: Mapping[str, Floats], facts: Mapping[str, str], name: str = "timm"
) -> Grid:
    """Return timm's entries; the trend is fitted on models that saw only ImageNet-1k and had no teacher.

    Of a model at several input sizes, only the most accurate entry is fitted, because they are not
    independent.
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
        name,
        tuple(models),
        dict(columns),
        {setting: one for setting, one in known_settings("timm").items() if setting in columns},
        types,
        once & groups["imagenet-1k"],
        "models trained on ImageNet-1k alone, without a teacher, each at its most accurate size",
        groups,
        (),
        facts,
    )


def _leaderboard(name: str) -> Grid:
    table = read_table("grid-robustbench")
    dataset = name.removeprefix("robustbench-")
    rows = np.flatnonzero([one == dataset for one in table.columns["dataset"]])
    models, more_data = ([table.columns[key][row] for row in rows] for key in ("model", "more_data"))
    settings = known_settings(name)
    types = tuple(
        "MORE_DATA" if more else "STANDARD" if model.startswith(("Standard", "AlexNet")) else "ROBUST_INTV"
        for model, more in zip(models, more_data, strict=True)
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
    """Read models and their base models from a CSV file with `model` and `base_model`."""
    rows = read_rows(path, ["model", "base_model"])
    counts = Counter((row["model"], row["base_model"]) for row in rows)
    for (model, base), count in counts.items():
        if model == base:
            raise OptionError(f"{path}: {model!r} is its own base model")
        if count > 1:
            raise OptionError(f"{path} lists {model!r} with {base!r} {count} times")
    return tuple(
        Pair(row["model"], row["base_model"], row.get("intervention", ""), row.get("provenance", str(path)))
        for row in rows
    )

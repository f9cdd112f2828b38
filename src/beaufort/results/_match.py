"""Which cells of a store belong together: those of one suite, one data set and one seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from beaufort.conditions import Condition
from beaufort.corruptions import SCALES
from beaufort.errors import BeaufortError
from beaufort.store import Cell, FileStore
from beaufort.suites import SUITE_NAMES, Suite, SuiteError, get_suite

__all__ = [
    "ResultsError",
    "Setting",
    "cells_by_model",
    "conditions_by_key",
    "find_setting",
    "find_suite",
    "prepared_as",
    "suite_of",
]


class ResultsError(BeaufortError, LookupError):
    """Results that are not there, or cannot be put side by side."""


class Setting(NamedTuple):
    """What answers must share to be compared."""

    data: str
    """The digest of the data set."""
    order: int | None
    """The seed of its order, if it was shuffled."""
    seed: int | None
    """Of what is random in the corruptions; None if nothing is."""


def suite_of(run: Mapping[str, Any]) -> Suite | None:
    try:
        return Suite.from_dict(run["suite"])
    except (SuiteError, KeyError, TypeError, AttributeError):
        return None


def find_suite(
    store: FileStore,
    given: str | Suite | None,
    runs: Sequence[tuple[Suite, Mapping[str, Any]]],
    cells: Mapping[str, Cell],
) -> Suite:
    if isinstance(given, Suite):
        return given
    if given is not None:
        recorded = {suite.name: suite for suite, _ in runs}
        return recorded[given] if given in recorded and given not in SUITE_NAMES else get_suite(given)
    if runs:
        return runs[-1][0]
    # A store without records of its runs: the largest published suite that some model has the whole of.
    for name in sorted(SUITE_NAMES, key=lambda name: -len(get_suite(name).conditions())):
        suite = get_suite(name)
        matching = [cell for cell in cells.values() if prepared_as(suite, cell)]
        wanted = conditions_by_key(suite)
        for setting in _settings(matching):
            if any(len(row) == len(wanted) for row in cells_by_model(matching, setting, wanted).values()):
                return suite
    raise ResultsError(
        f"{store.location} does not say which suite its answers belong to, and no model has all conditions "
        f"of a published one; name it with --suite: {', '.join(SUITE_NAMES)}, or a YAML file"
    )


def prepared_as(suite: Suite, cell: Cell) -> bool:
    """Whether pictures were made ready as the suite says, whatever was done to them then."""
    steps = [step for step in cell.condition.get("prepare", []) if step != "rgb"]
    return steps == [str(step) for step in suite.prepare]


def _settings(cells: Sequence[Cell]) -> list[Setting]:
    data = dict.fromkeys((str(cell.data.get("digest")), cell.data.get("order")) for cell in cells)
    seeds: dict[int | None, None] = dict.fromkeys(
        cell.condition["seed"] for cell in cells if "seed" in cell.condition
    )
    return [Setting(*one, seed) for one in data for seed in seeds or [None]]


def find_setting(
    store: FileStore, suite: Suite, cells: Sequence[Cell], run: Mapping[str, Any] | None, seed: int | None
) -> Setting:
    """The setting that is meant: the last run's, or the only one there is."""
    settings = _settings(cells)
    if run is not None:
        data = run.get("data", {})
        settings = [
            s for s in settings if (s.data, s.order) == (data.get("digest"), data.get("order"))
        ] or settings
        last = [s for s in settings if s.seed in (None, run.get("seed") if seed is None else seed)]
        settings = last or settings
    if seed is not None:
        settings = [s for s in settings if s.seed in (None, seed)]
    if len(settings) == 1:
        return settings[0]
    if not settings:
        raise ResultsError(
            f"{store.location} has no answers to {suite.name}"
            + (f" with the seed {seed}" if seed is not None else "")
        )
    seeds = sorted({s.seed for s in settings if s.seed is not None})
    sets = {s.data[:12] for s in settings}
    raise ResultsError(
        f"{store.location} has answers to {suite.name} with the seeds {', '.join(map(str, seeds))} and "
        f"on {len(sets)} data sets; choose with --seed, or keep one data set a store"
    )


def conditions_by_key(suite: Suite) -> dict[str, Condition]:
    """The conditions of a suite by what their cells say of them."""
    return {_key_of(suite, condition): condition for condition in suite.conditions("x")}


def _key_of(suite: Suite, condition: Condition) -> str:
    if suite.scale in SCALES:
        return _key(condition.facts(scale=suite.scale, seed=0), exact=True)
    return _key({"corruption": condition.corruption, "severity": condition.severity}, exact=False)


def _key(facts: Mapping[str, Any], *, exact: bool) -> str:
    """What makes two conditions the same; constants too where they are known without the images."""
    names = ("corruption", "severity", "version", "scale", "params") if exact else ("corruption", "severity")
    return json.dumps({name: facts.get(name) for name in names}, sort_keys=True)


def cells_by_model(
    cells: Sequence[Cell], setting: Setting, conditions: Mapping[str, Condition]
) -> dict[str, dict[Condition, Cell]]:
    """Cells of a setting by model and condition, in the suite's order."""
    exact = "params" in next(iter(conditions), "")
    found: dict[tuple[str, str], dict[Condition, Cell]] = {}
    for cell in cells:
        if (str(cell.data.get("digest")), cell.data.get("order")) != (setting.data, setting.order):
            continue
        if cell.condition.get("seed", setting.seed) != setting.seed:
            continue
        condition = conditions.get(_key(cell.condition, exact=exact))
        if condition is not None:
            named = str(cell.model["name"]), _weights(cell)
            real = Condition(str(cell.data["name"]), condition.corruption, condition.severity)
            found.setdefault(named, {})[real] = cell
    places = {(c.corruption, c.severity): place for place, c in enumerate(conditions.values())}
    return {
        _name(named, found): dict(
            sorted(row.items(), key=lambda item: places[item[0].corruption, item[0].severity])
        )
        for named, row in found.items()
    }


def _weights(cell: Cell) -> str:
    """Tells two models of one name apart."""
    return json.dumps({key: value for key, value in cell.model.items() if key != "name"}, sort_keys=True)


def _name(named: tuple[str, str], all_of: Mapping[tuple[str, str], Any]) -> str:
    """A model's name, with the beginning of its digest if another one has the same."""
    name, facts = named
    if sum(other == name for other, _ in all_of) == 1:
        return name
    return f"{name}#{str(json.loads(facts).get('digest') or facts).removeprefix('sha256:')[:8]}"

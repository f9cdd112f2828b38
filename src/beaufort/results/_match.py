"""The cells of a store that belong together: one suite, one dataset, one seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from beaufort._core.errors import BeaufortError
from beaufort._core.text import counted
from beaufort.corruptions import SCALES, corruptions
from beaufort.metrics import metrics
from beaufort.store import Cell, FileStore
from beaufort.suites import SHIFT_SUITE_NAMES, SUITE_NAMES, Suite, SuiteError, get_suite, with_own_name
from beaufort.suites.conditions import Condition
from beaufort.suites.shifts import shifts


class ResultsError(BeaufortError, LookupError):
    """Results that are missing, or cannot be compared."""


class Scored(NamedTuple):
    """How predictions were scored; in a comparison, only the outputs of models may differ."""

    convention: str = ""
    """Empty if every output is a class."""
    label_sets: str = ""
    """Their digest; empty if an image has one label."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Scored:
        """Return the scoring from the facts of a cell or a run."""
        return cls(str(facts.get("convention") or ""), str(facts.get("truths") or ""))


class ResultSetting(NamedTuple):
    """Properties that predictions must share to be comparable."""

    data: str
    """Digest of the dataset."""
    order: int | str | None
    """Seed of its order, if it was shuffled; `spread` and the seed, if it was balanced over classes."""
    seed: int | None
    """Seed of the corruptions; None if none is random."""
    scored: Scored = Scored()
    """How predictions were scored."""


def suite_of(run: Mapping[str, Any]) -> Suite | None:
    try:
        return Suite.from_dict(run["suite"])
    except (SuiteError, KeyError, TypeError, AttributeError):
        return None


def check_registered(store: FileStore, given: str | Suite | None, runs: Sequence[Mapping[str, Any]]) -> None:
    """Raise an error if the suite has names of a package that is not imported."""
    suites = [run["suite"] for run in runs if isinstance(run.get("suite"), Mapping)]
    meant = suites[-1:] if given is None else [suite for suite in suites if suite.get("name") == given]
    names = [name for suite in meant for name in suite.get("corruptions", ()) if isinstance(name, str)]
    names += [name for suite in meant for text in suite.get("shifts") or () for name in _names_in(str(text))]
    missing = sorted({name for name in names if name not in corruptions and name not in shifts})
    wanted = {name for suite in meant for name in suite.get("metrics") or () if isinstance(name, str)}
    if missing := [*missing, *sorted(wanted.difference(metrics))]:
        raise ResultsError(
            f"unknown corruptions or metrics in {store.location}: {', '.join(missing)}; pass the module that "
            "registers them as --import, or install its package"
        )


def _names_in(shift: str) -> list[str]:
    """Return the corruptions of a chain, or the kind of another shift."""
    first = shift.partition("@")[0]
    return [first] if first in shifts else [link.partition("@")[0] for link in shift.split("+")]


def find_suite(
    store: FileStore,
    given: str | Suite | None,
    runs: Sequence[tuple[Suite, Mapping[str, Any]]],
    cells: Mapping[str, Cell],
) -> Suite:
    if isinstance(given, Suite):
        return with_own_name(given)
    if given is not None:
        recorded = {suite.name: suite for suite, _ in runs}
        own = given in recorded and given not in (*SUITE_NAMES, *SHIFT_SUITE_NAMES)
        return recorded[given] if own else get_suite(given)
    if runs:
        return runs[-1][0]
    # A store without records of its runs: the largest published suite that some model has the whole of.
    for suite in sorted(map(get_suite, SUITE_NAMES), key=lambda suite: -len(suite.conditions())):
        matching = [cell for cell in cells.values() if prepared_as(suite, cell)]
        wanted = conditions_by_key(suite)
        for setting in _settings(matching):
            if any(len(row) == len(wanted) for row in cells_by_model(matching, setting, wanted).values()):
                return suite
    raise ResultsError(
        f"cannot determine the suite of the predictions in {store.location}; pass --suite: "
        f"{', '.join(SUITE_NAMES)}, or a YAML file"
    )


def prepared_as(suite: Suite, cell: Cell) -> bool:
    """Whether images were prepared as the suite says, whatever was done to them then."""
    steps = [step for step in cell.condition.get("prepare", []) if step != "rgb"]
    ready = "stored" in cell.condition and cell.condition.get("corruption") is not None
    return steps == ([] if ready else [str(step) for step in suite.steps(cell.condition.get("corruption"))])


def order_of(data: Mapping[str, Any]) -> int | str | None:
    """Return the order of a dataset from its facts."""
    return f"spread {data['spread']}" if "spread" in data else data.get("order")


def scored_as(cell: Cell) -> Scored:
    """Return how the predictions of a cell were scored."""
    return Scored.of(cell.data.get("labels") or {})


def _settings(cells: Sequence[Cell]) -> list[ResultSetting]:
    """Return all settings; a model whose outputs are all classes has predictions under both."""
    data: dict[tuple[str, int | str | None], dict[Scored, None]] = {}
    for cell in cells:
        data.setdefault((str(cell.data.get("digest")), order_of(cell.data)), {})[scored_as(cell)] = None
    seeds: dict[int | None, None] = dict.fromkeys(
        cell.condition["seed"] for cell in cells if "seed" in cell.condition
    )
    found = []
    for one, ways in data.items():
        under = {way.label_sets for way in ways if way.convention}
        chosen = [way for way in ways if way.convention or way.label_sets not in under]
        found += [ResultSetting(*one, seed, way) for way in chosen for seed in seeds or [None]]
    return found


def find_setting(
    store: FileStore,
    suite: Suite,
    cells: Sequence[Cell],
    run: Mapping[str, Any] | None,
    seed: int | None,
    scored: Scored | None = None,
) -> ResultSetting:
    """Return the setting of the last run, or the only one.

    `scored` is how predictions are to be scored; others will do if none are scored so.
    """
    settings = _settings(cells)
    if scored is not None:
        settings = [s for s in settings if s.scored == scored] or settings
    if run is not None:
        data = run.get("data", {})
        same = (data.get("digest"), order_of(data))
        settings = [s for s in settings if (s.data, s.order) == same] or settings
        way = Scored.of(run.get("labels") or {})
        if any(s.scored == way for s in settings):
            settings = [s for s in settings if s.scored == way]
        elif not way.convention:  # the store has what that run evaluated, and more
            plain = [s._replace(scored=way) for s in settings if s.scored.label_sets == way.label_sets]
            there = any(scored_as(cell) == way for cell in cells)
            settings = list(dict.fromkeys(plain)) if plain and there else settings
        last = [s for s in settings if s.seed in (None, run.get("seed") if seed is None else seed)]
        settings = last or settings
    if seed is not None:
        settings = [s for s in settings if s.seed in (None, seed)]
    if len(settings) == 1:
        return settings[0]
    if not settings:
        raise ResultsError(
            f"{store.location} has no predictions for {suite.name}"
            + (f" with the seed {seed}" if seed is not None else "")
        )
    seeds = sorted({s.seed for s in settings if s.seed is not None})
    sets = {s.data[:12] for s in settings}
    raise ResultsError(
        f"{store.location} has several results of {suite.name}: {counted(len(seeds), 'seed')} "
        f"({', '.join(map(str, seeds))}), {counted(len(sets), 'dataset')}, and "
        f"{counted(len({s.scored for s in settings}), 'way')} of scoring; select one with --seed or --labels "
        "convention=…, or use a store per dataset"
    )


def conditions_by_key(suite: Suite, stored: Mapping[str, str] | None = None) -> dict[str, Condition]:
    """Return the conditions of a suite by the facts of their cells.

    Args:
        suite: whose conditions.
        stored: the digests of stored images by what was done to them, if a run read such images.
    """
    return {_key_of(suite, condition, stored): condition for condition in suite.conditions("x")}


def _key_of(suite: Suite, condition: Condition, stored: Mapping[str, str] | None) -> str:
    strength = {"corruption": condition.corruption, "severity": condition.severity}
    if stored is not None:
        level = {} if condition.level is None else {"level": condition.level}
        return _key({**strength, **level, "stored": stored.get(condition.done)}, exact=False)
    if condition.shift is not None or suite.scale in SCALES:
        return _key(condition.facts(scale=suite.scale, seed=0), exact=suite.scale in SCALES)
    return _key(strength, exact=False)


_EXACT = ("version", "scale", "params")
_PLAIN = {"corruption", "severity", "seed", "prepare", *_EXACT}


def _key(facts: Mapping[str, Any], *, exact: bool) -> str:
    """Return the identity of a condition, with constants if they do not depend on the images.

    Stored images are the same if their digest is; a chain of corruptions if its links are; a shift of
    another kind if all its facts are.
    """
    names = ("corruption", "severity", *(_EXACT if exact and "stored" not in facts else ()))
    plain = facts.get("corruption") in corruptions or ("links" in facts and not exact)
    more = {} if plain and "stored" not in facts else facts
    rest = {name: value for name, value in more.items() if name not in _PLAIN}
    return json.dumps({**{name: facts.get(name) for name in names}, **rest}, sort_keys=True)


def cells_by_model(
    cells: Sequence[Cell],
    setting: ResultSetting,
    conditions: Mapping[str, Condition],
    dataset: str | None = None,
) -> dict[str, dict[Condition, Cell]]:
    """Return the cells of a setting by model and condition, in the suite's order.

    Conditions are those of `dataset`; of what the cells call it if None.
    """
    exact = "params" in next(iter(conditions), "")
    found: dict[tuple[str, str], dict[Condition, list[Cell]]] = {}
    for cell in cells:
        if (str(cell.data.get("digest")), order_of(cell.data)) != (setting.data, setting.order):
            continue
        if scored_as(cell) not in (setting.scored, setting.scored._replace(convention="")):
            continue
        if cell.condition.get("seed", setting.seed) != setting.seed:
            continue
        condition = conditions.get(_key(cell.condition, exact=exact))
        if condition is not None:
            named = str(cell.model["name"]), _weights(cell)
            real = replace(condition, dataset=dataset or str(cell.data["name"]))
            found.setdefault(named, {}).setdefault(real, []).append(cell)
    chosen = {named: _one_way(row, setting.scored) for named, row in found.items()}
    places = {condition.done: place for place, condition in enumerate(conditions.values())}
    return {
        _name(named, found): dict(sorted(row.items(), key=lambda item: places[item[0].done]))
        for named, row in chosen.items()
    }


def _one_way(row: Mapping[Condition, Sequence[Cell]], scored: Scored) -> dict[Condition, Cell]:
    """Return the cells of a model with one scoring: the requested one, or labels as outputs."""
    stored = any(scored_as(cell) == scored for cells in row.values() for cell in cells)
    way = scored if stored else scored._replace(convention="")
    return {condition: cell for condition, cells in row.items() for cell in cells if scored_as(cell) == way}


def _weights(cell: Cell) -> str:
    """Return the key that distinguishes models of one name."""
    return json.dumps({key: value for key, value in cell.model.items() if key != "name"}, sort_keys=True)


def _name(named: tuple[str, str], all_of: Mapping[tuple[str, str], Any]) -> str:
    """A model's name, with the beginning of its digest if another one has the same."""
    name, facts = named
    if sum(other == name for other, _ in all_of) == 1:
        return name
    return f"{name}#{str(json.loads(facts).get('digest') or facts).removeprefix('sha256:')[:8]}"

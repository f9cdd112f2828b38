"""From a store to the answers that belong together: one suite, one data set, one seed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from beaufort.conditions import Condition
from beaufort.corruptions import SCALES
from beaufort.errors import BeaufortError
from beaufort.registry import unknown
from beaufort.results.answers import Answers, read_answers
from beaufort.store import Cell, FileStore, Listing
from beaufort.suites import SUITE_NAMES, Suite, SuiteError, get_suite

__all__ = [
    "Results",
    "ResultsError",
    "Setting",
    "SharedAnswers",
    "Source",
    "join_results",
    "open_results",
]


_ROOM = 2 << 30
"""Bytes of answers that are kept in memory."""


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


class Source(NamedTuple):
    """A store, and its files as they were when it was looked at."""

    store: FileStore
    listing: Listing


@dataclass(frozen=True, eq=False)
class Results:
    """The models of a store that have answers to every condition of a suite."""

    suite: Suite
    setting: Setting
    dataset: str
    """What the data set is called."""
    classes: tuple[str, ...]
    """What its classes are called; empty if the store does not say."""
    cells: Mapping[str, Mapping[Condition, Cell]]
    """By model and condition."""
    incomplete: Mapping[str, int]
    """Models that lack conditions, and how many."""
    sources: Mapping[str, Source]
    """Where each model's answers are."""
    origins: tuple[dict[str, Any], ...] = ()
    """Where the answers came from: commands, versions, machines, times."""
    limit: int | None = None
    """Only the first so many images of the data set count; all if None."""

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, in alphabetical order."""
        return tuple(self.cells)

    @cached_property
    def _read(self) -> dict[str, Answers]:
        return {}

    def answers(self, model: str) -> Answers:
        """What a model said; read when first asked for, and kept while there is room."""
        if model not in self.cells:
            raise ResultsError(unknown("model of this store", model, dict.fromkeys(self.cells)))
        if model not in self._read:
            read = read_answers(*self.sources[model], self.cells[model], self.limit)
            while self._read and sum(one.size for one in self._read.values()) + read.size > _ROOM:
                self._read.pop(next(iter(self._read)))
            self._read[model] = read
        return self._read[model]


def open_results(
    store: str | Path | FileStore,
    *,
    suite: str | Suite | None = None,
    models: Sequence[str] | None = None,
    seed: int | None = None,
) -> Results:
    """The answers of a store to one suite.

    Args:
        store: a store, its folder or URL.
        suite: a suite, its name or file; the one of the store's last run if None.
        models: only these.
        seed: of the corruptions; the one of the last run if None.
    """
    kept = store if isinstance(store, FileStore) else FileStore(store)
    listing = kept.listing()
    cells = kept.cells()
    if not cells:
        raise ResultsError(
            f"{kept.location} holds no answers; `beaufort run --store {kept.location}` makes some"
        )
    runs = [(asked, run) for run in kept.runs() if (asked := _suite_of(run))]
    asked = _find_suite(kept, suite, runs, cells)
    matching = [cell for cell in cells.values() if _prepared_as(asked, cell)]
    run = next((run for other, run in reversed(runs) if other.digest == asked.digest), None)
    setting = _setting(kept, asked, matching, run, seed)
    conditions = _wanted(asked)
    found = _by_model(matching, setting, conditions)
    if models is not None:
        for name in models:
            if name not in found:
                raise ResultsError(unknown(f"model of {kept.location}", name, dict.fromkeys(found)))
        found = {name: found[name] for name in models}
    whole = {name: row for name, row in sorted(found.items()) if len(row) == len(conditions)}
    lacking = {name: len(conditions) - len(row) for name, row in found.items() if name not in whole}
    if not whole:
        raise ResultsError(_nothing_whole(kept, asked, lacking, len(conditions)))
    first = next(iter(next(iter(whole.values())).values()))
    origins = _origins(kept, listing, whole)
    classes = tuple(map(str, run.get("classes", ()))) if run else ()
    sources = dict.fromkeys(whole, Source(kept, listing))
    return Results(asked, setting, str(first.data["name"]), classes, whole, lacking, sources, origins)


class SharedAnswers(Mapping[str, Answers]):
    """Models' answers to the images that all of them have; each is read when asked for."""

    def __init__(self, results: Results, models: Sequence[str], also: Sequence[str] = ()) -> None:
        """The images are those that the models `also` named have, too."""
        self._results = results
        self._models = tuple(dict.fromkeys(models))
        first = results.answers(self._models[0]).ids
        shared = set(first)
        self._order: list[str] | None = None
        for name in (*self._models[1:], *also):
            if (ids := results.answers(name).ids) != first:
                shared.intersection_update(ids)
                self._order = [image for image in first if image in shared]
        if not shared:
            raise ResultsError(
                f"{', '.join(self._models)} have no image in common; evaluate all of them on the same images"
            )

    def __getitem__(self, model: str) -> Answers:
        if model not in self._models:
            raise KeyError(model)
        answers = self._results.answers(model)
        if self._order is None:
            return answers
        places = {image: place for place, image in enumerate(answers.ids)}
        return answers.take(np.array([places[image] for image in self._order]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)


def join_results(parts: Sequence[Results]) -> Results:
    """The models of several stores side by side; a `ResultsError` says why they cannot be compared.

    Models of one name get the name of their store behind it, or its place if that does not help.
    """
    first = parts[0]
    for other in parts[1:]:
        _check_comparable(first, other)
    names = [name for part in parts for name in part.models]
    cells: dict[str, Mapping[Condition, Cell]] = {}
    sources: dict[str, Source] = {}
    lacking: dict[str, int] = {}
    for part in parts:
        for name in part.models:
            known = name if names.count(name) == 1 else f"{name} ({_called(part, name, parts)})"
            cells[known], sources[known] = part.cells[name], part.sources[name]
        lacking.update(part.incomplete)
    origins = {json.dumps(one, sort_keys=True): one for part in parts for one in part.origins}
    classes = max((part.classes for part in parts), key=len)
    return Results(
        first.suite, first.setting, first.dataset, classes, cells, lacking, sources, tuple(origins.values())
    )


def _called(part: Results, model: str, parts: Sequence[Results]) -> str:
    """What to call a model's store among others: its last name, if no other has it."""
    places = {one.sources[model].store.location for one in parts if model in one.sources}
    here = part.sources[model].store.location
    short = [place.rstrip("/").rpartition("/")[2] for place in places]
    last = here.rstrip("/").rpartition("/")[2]
    return last if short.count(last) == 1 else here


def _check_comparable(first: Results, other: Results) -> None:
    if first.suite.digest != other.suite.digest:
        a, b = str(first.suite), str(other.suite)
        differ = f"{a} and {b}" if a != b else f"two suites that are both called {a}"
        raise ResultsError(f"results of {differ} cannot be compared; evaluate both on the same suite")
    if first.setting.data != other.setting.data:
        raise ResultsError(
            f"results on other data cannot be compared: {first.dataset} ({first.setting.data[:12]}) and "
            f"{other.dataset} ({other.setting.data[:12]}); evaluate both on the same images"
        )
    if first.setting.seed != other.setting.seed:
        raise ResultsError(
            f"results of the seeds {first.setting.seed} and {other.setting.seed} cannot be compared: the "
            "corruptions differ; evaluate both with the same seed"
        )


def _suite_of(run: Mapping[str, Any]) -> Suite | None:
    try:
        return Suite.from_dict(run["suite"])
    except (SuiteError, KeyError, TypeError, AttributeError):
        return None


def _find_suite(
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
        matching = [cell for cell in cells.values() if _prepared_as(suite, cell)]
        wanted = _wanted(suite)
        for setting in _settings(matching):
            if any(len(row) == len(wanted) for row in _by_model(matching, setting, wanted).values()):
                return suite
    raise ResultsError(
        f"{store.location} does not say which suite its answers belong to, and no model has all conditions "
        f"of a published one; name it with --suite: {', '.join(SUITE_NAMES)}, or a YAML file"
    )


def _prepared_as(suite: Suite, cell: Cell) -> bool:
    """Whether pictures were made ready as the suite says, whatever was done to them then."""
    steps = [step for step in cell.condition.get("prepare", []) if step != "rgb"]
    return steps == [str(step) for step in suite.prepare]


def _settings(cells: Sequence[Cell]) -> list[Setting]:
    data = dict.fromkeys((str(cell.data["digest"]), cell.data.get("order")) for cell in cells)
    seeds: dict[int | None, None] = dict.fromkeys(
        cell.condition["seed"] for cell in cells if "seed" in cell.condition
    )
    return [Setting(*one, seed) for one in data for seed in seeds or [None]]


def _setting(
    store: FileStore, suite: Suite, cells: Sequence[Cell], run: Mapping[str, Any] | None, seed: int | None
) -> Setting:
    """The setting that is meant: the last run's, or the only one there is."""
    settings = _settings(cells)
    if run is not None:
        data = run["data"]
        settings = [
            s for s in settings if (s.data, s.order) == (data["digest"], data.get("order"))
        ] or settings
        last = [s for s in settings if s.seed in (None, run["seed"] if seed is None else seed)]
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


def _wanted(suite: Suite) -> dict[str, Condition]:
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


def _by_model(
    cells: Sequence[Cell], setting: Setting, conditions: Mapping[str, Condition]
) -> dict[str, dict[Condition, Cell]]:
    """Cells of a setting by model and condition, in the suite's order."""
    exact = "params" in next(iter(conditions), "")
    found: dict[tuple[str, str], dict[Condition, Cell]] = {}
    for cell in cells:
        if (cell.data["digest"], cell.data.get("order")) != (setting.data, setting.order):
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


def _origins(
    store: FileStore, listing: Listing, whole: Mapping[str, Mapping[Condition, Cell]]
) -> tuple[dict[str, Any], ...]:
    pieces = [piece for row in whole.values() for cell in row.values() for piece in listing[cell.fingerprint]]
    distinct: dict[str, dict[str, Any]] = {}
    for *_, origin in store.summaries(pieces):
        for one in _flat(origin):
            distinct.setdefault(json.dumps(one, sort_keys=True), one)
    return tuple(distinct.values())


def _flat(origin: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The origins of a file; a gathered one has those of its parts."""
    parts = origin.get("of")
    if isinstance(parts, list):
        for part in parts:
            yield from _flat(part)
    elif origin:
        yield dict(origin)


def _nothing_whole(store: FileStore, suite: Suite, lacking: Mapping[str, int], count: int) -> str:
    if not lacking:
        return (
            f"{store.location} has no answers to {suite.name}; `beaufort run --suite {suite.name}` makes them"
        )
    name, lacks = min(lacking.items(), key=lambda item: item[1])
    return (
        f"no model of {store.location} has answers to all {count} conditions of {suite.name}: {name} lacks "
        f"{lacks}; the same `beaufort run` again makes what is missing"
    )

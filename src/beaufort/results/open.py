"""Open the results of a store, for all models or for one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from beaufort._core.registry import unknown_message
from beaufort.data.labels import Grouping, LabelSets, LabelSpace, check_convention, read_label_sets
from beaufort.results._match import (
    ResultsError,
    ResultSetting,
    cells_by_model,
    check_registered,
    conditions_by_key,
    find_setting,
    find_suite,
    prepared_as,
    suite_of,
)
from beaufort.results.rescore import WantedScoring
from beaufort.results.results import ListedStore, Results
from beaufort.store import Cell, FileStore, Listing, flat_origins
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition

_BETWEEN = "::"
"""Separator of a store and a model."""


def open_results(
    store: str | Path | FileStore,
    *,
    suite: str | Suite | None = None,
    models: Sequence[str] | None = None,
    seed: int | None = None,
    labels: str | Path | Grouping | LabelSpace | None = None,
    convention: str | None = None,
    label_sets: str | Path | LabelSets | None = None,
) -> Results:
    """Open the predictions of a store for a suite of one dataset; see `open_parts` for suites of several.

    Args:
        store: a store, its folder or URL.
        suite: a suite, its name or file; the one of the store's last run if None.
        models: only these; a name that several models have means the newest of them.
        seed: of the corruptions; the one of the last run if None.
        labels: another label space, as for `evaluate`; predictions are scored again, from logits that were
            kept.
        convention: `restricted` or `all`, likewise.
        label_sets: several valid labels per image, or a file of them, likewise.
    """
    scoring: dict[str, Any] = {"labels": labels, "convention": convention, "label_sets": label_sets}
    parts = open_parts(store, suite=suite, models=models, seed=seed, **scoring)
    if len(parts) > 1:
        raise ResultsError(
            f"the suite has {len(parts)} datasets: {', '.join(one.suite.name for one in parts)}; pass the "
            "suite of one, or use open_parts()"
        )
    return parts[0]


def open_parts(
    store: str | Path | FileStore,
    *,
    suite: str | Suite | None = None,
    models: Sequence[str] | None = None,
    seed: int | None = None,
    labels: str | Path | Grouping | LabelSpace | None = None,
    convention: str | None = None,
    label_sets: str | Path | LabelSets | None = None,
) -> tuple[Results, ...]:
    """Open the predictions of a store for each dataset of a suite; arguments as for `open_results`."""
    if convention is not None:
        check_convention(convention)
    if not isinstance(label_sets, LabelSets | None):
        label_sets = read_label_sets(label_sets)
    wanted = WantedScoring(labels, convention, label_sets)
    return _Opener.of(store, seed, wanted).open_parts(suite, models)


def stored_suites(store: str | Path | FileStore) -> tuple[Suite, ...]:
    """Return the suites of a store's runs, that of the last run first; of equal names, the last."""
    kept = store if isinstance(store, FileStore) else FileStore(store)
    found: dict[str, Suite] = {}
    for run in reversed(kept.runs()):
        if (suite := suite_of(run)) is not None:
            found.setdefault(suite.name, suite)
    return tuple(found.values())


def open_target_parts(
    text: str,
    store: str = "results",
    *,
    suite: str | None = None,
    seed: int | None = None,
    role: str = "model",
) -> tuple[Results, ...]:
    """Open the results of one model, one for each dataset of the suite; see `open_targets` for several."""
    return open_targets([(text, role)], store, suite=suite, seed=seed)[0]


def open_targets(
    targets: Iterable[tuple[str, str]],
    store: str = "results",
    *,
    suite: str | None = None,
    seed: int | None = None,
) -> list[tuple[Results, ...]]:
    """Open the results of several models, each of them one for each dataset of the suite.

    Every store is read once, however many of its models are named.

    Args:
        targets: texts, each with the role of its model for error messages: `STORE::MODEL`; `STORE`, if it
            has one model; or `MODEL`, one of `store`.
        store: store of the models that are named without one.
        suite: as for `open_results`.
        seed: as for `open_results`.
    """
    opener = cache(partial(_Opener.of, seed=seed, wanted=WantedScoring()))
    return [_open_target(text, role, store, suite, opener) for text, role in targets]


def _open_target(
    text: str, role: str, store: str, suite: str | None, opener: Callable[[str], _Opener]
) -> tuple[Results, ...]:
    location, between, model = text.partition(_BETWEEN)
    if not between:
        location, model = (text, "") if _is_store(text) else (store, text)
    elif not location or not model:
        raise ResultsError(
            f"result must be STORE{_BETWEEN}MODEL, a store of one model, or the name of a model, got {text!r}"
        )
    try:
        parts = opener(location).open_parts(suite, [model] if model else None)
    except ResultsError as error:
        if between or not str(error).startswith("unknown model"):
            raise
        what = "is a directory without predictions" if Path(text).is_dir() else "is not a store"
        raise ResultsError(f"{role} not found: {text} {what}, and an {error}") from None
    for results in parts:
        if len(results.models) > 1:
            raise ResultsError(
                f"{location} has {len(results.models)} models: {', '.join(results.models[:10])}; pass one as "
                f"{location}{_BETWEEN}{results.models[0]}" + "".join(f". {note}" for note in results.notes)
            )
    return parts


def _is_store(text: str) -> bool:
    return "://" in text or (Path(text).is_dir() and bool(FileStore(text).pieces()))


def _run_of(run: Mapping[str, Any] | None, number: int) -> dict[str, Any] | None:
    """Return the record of a run on several datasets, for one of them."""
    if run is None:
        return None
    places = [run.get(name) for name in ("parts", "shown")]
    known = [place[number] for place in places if isinstance(place, list) and number < len(place)]
    return {**run, **{key: value for one in known if isinstance(one, dict) for key, value in one.items()}}


class _Group(NamedTuple):
    """The cells of a store for a suite of one dataset."""

    suite: Suite
    setting: ResultSetting
    conditions: int
    cells: Mapping[str, dict[Condition, Cell]]
    """By model, also of models that lack some conditions."""
    namesakes: _Namesakes
    stored: bool
    """Whether the images were read as a published set stores them."""


@dataclass(frozen=True)
class _Opener:
    """A store that was read once, and what is wanted of it."""

    store: FileStore
    listing: Listing
    cells: Mapping[str, Cell]
    runs: Sequence[Mapping[str, Any]]
    seed: int | None
    wanted: WantedScoring
    _groups: dict[tuple[str, str | None], _Group] = field(default_factory=dict)

    @classmethod
    def of(cls, store: str | Path | FileStore, seed: int | None, wanted: WantedScoring) -> _Opener:
        kept = store if isinstance(store, FileStore) else FileStore(store)
        cells = kept.cells()
        if not cells:
            raise ResultsError(
                f"{kept.location} has no predictions; create them with `beaufort run --store {kept.location}`"
            )
        return cls(kept, kept.listing(), cells, kept.runs(), seed, wanted)

    def open_parts(self, suite: str | Suite | None, models: Sequence[str] | None) -> tuple[Results, ...]:
        """Return the predictions for each dataset of a suite, or of the last run's suite."""
        check_registered(self.store, suite, self.runs)
        runs = [(asked, run) for run in self.runs if (asked := suite_of(run))]
        asked = find_suite(self.store, suite, runs, self.cells)
        run = next((run for other, run in reversed(runs) if other.digest == asked.digest), None)
        if not asked.parts:
            return (self._open(asked, run, None, models),)
        return tuple(
            self._open(part, _run_of(run, number), asked, models) for number, part in enumerate(asked.parts)
        )

    def _group(self, asked: Suite, run: Mapping[str, Any] | None, dataset: str | None) -> _Group:
        """Return the cells of all models for a suite of one dataset."""
        key = (asked.digest, dataset)
        if key not in self._groups:
            stored = run.get("stored") if run else None
            stored = stored if isinstance(stored, dict) else None
            if stored is not None and "" not in stored and asked.clean:
                asked = asked.without_clean()
            matching = [
                cell
                for cell in self.cells.values()
                if prepared_as(asked, cell) and ("stored" in cell.condition) == (stored is not None)
            ]
            scored = self.wanted.scored(matching)
            setting = find_setting(self.store, asked, matching, run, self.seed, scored)
            conditions = conditions_by_key(asked, stored)
            found = cells_by_model(matching, setting, conditions, dataset)
            namesakes = _Namesakes(
                self.store, self.listing, {name: row.values() for name, row in found.items()}
            )
            self._groups[key] = _Group(asked, setting, len(conditions), found, namesakes, stored is not None)
        return self._groups[key]

    def _open(
        self,
        asked: Suite,
        run: Mapping[str, Any] | None,
        part_of: Suite | None,
        models: Sequence[str] | None,
    ) -> Results:
        """Return the predictions for a suite of one dataset, of which `run` was the last run.

        A part of another suite has the name it has there, whatever an earlier run has called its data.
        """
        kept, listing, wanted = self.store, self.listing, self.wanted
        asked, setting, count, found, namesakes, stored = self._group(
            asked, run, asked.name if part_of else None
        )
        notes = tuple(namesakes.notes(models))
        complete = {name: row for name, row in sorted(found.items()) if len(row) == count}
        if models is not None:
            models = [namesakes.newest(name) or name for name in models]
            for name in models:
                if name not in found:
                    raise ResultsError(unknown_message(f"model of {kept.location}", name, found))
            found = {name: found[name] for name in models}
        whole = {name: row for name, row in complete.items() if name in found}
        others = {} if wanted.rescores else {name: row for name, row in complete.items() if name not in found}
        lacking = {name: count - len(row) for name, row in found.items() if name not in whole}
        if not whole:
            raise _incomplete(kept, asked, lacking, count, chosen=models is not None)
        first = next(iter(next(iter(whole.values())).values()))
        classes = tuple(map(str, run.get("classes", ()))) if run else ()
        outputs = run.get("outputs") if run else None
        rescored = {
            name: one
            for name, row in whole.items()
            if (one := wanted.rescoring(kept, listing, row, classes)) is not None
        }
        return Results(
            asked,
            setting,
            asked.name if part_of else str(first.data["name"]),
            classes,
            whole,
            lacking,
            dict.fromkeys([*whole, *others], ListedStore(kept, listing)),
            self._origins(cell for row in whole.values() for cell in row.values()),
            outputs=outputs if isinstance(outputs, int) else None,
            rescored=rescored,
            stored=stored,
            part_of=part_of.title if part_of else "",
            notes=notes,
            others=others,
        )

    def _origins(self, cells: Iterable[Cell]) -> tuple[dict[str, Any], ...]:
        pieces = [piece for cell in cells for piece in self.listing[cell.fingerprint]]
        distinct: dict[str, dict[str, Any]] = {}
        for *_, origin in self.store.summaries(pieces):
            for one in flat_origins(origin):
                distinct.setdefault(json.dumps(one, sort_keys=True), one)
        return tuple(distinct.values())


def _incomplete(
    store: FileStore, suite: Suite, lacking: Mapping[str, int], count: int, *, chosen: bool
) -> ResultsError:
    """Return the error if no model is complete; if models were `chosen`, others may be."""
    if not lacking:
        return ResultsError(
            f"{store.location} has no predictions for {suite.name}; create them with `beaufort run --suite "
            f"{suite.name}`"
        )
    name, lacks = min(lacking.items(), key=lambda item: item[1])
    whose = f"{name} of {store.location}" if chosen else f"no model of {store.location} is complete: {name}"
    return ResultsError(
        f"{whose} lacks {lacks} of the {count} conditions of {suite.name}; run the same "
        "`beaufort run` again to complete it"
    )


class _Namesakes:
    """The models of a store that share a name, and the times of their last predictions."""

    def __init__(self, store: FileStore, listing: Listing, rows: Mapping[str, Iterable[Cell]]) -> None:
        self._groups: dict[str, dict[str, str]] = {}
        for known, cells in rows.items():
            cells = list(cells)
            name = str(cells[0].model["name"])
            if known == name or not known.startswith(f"{name}#"):
                continue
            pieces = [piece for cell in cells for piece in listing.get(cell.fingerprint, ())]
            times = (
                str(one.get("time", ""))
                for *_, origin in store.summaries(pieces)
                for one in flat_origins(origin)
            )
            self._groups.setdefault(name, {})[known] = max(times, default="")

    def newest(self, name: str) -> str | None:
        """Return the distinct name of the newest model of a name; None if only one has it."""
        group = self._groups.get(name)
        return None if group is None else max(group, key=lambda known: (group[known], known))

    def notes(self, selected: Sequence[str] | None) -> Iterator[str]:
        """Yield when each was evaluated, for the selected names or for all, and which one is used."""
        for name, group in self._groups.items():
            if selected is not None and name not in selected:
                continue
            each = ", ".join(f"{known} ({_shown(time)})" for known, time in sorted(group.items()))
            taken = "" if selected is None else f"; the newest is used: {self.newest(name)}"
            yield f"{len(group)} models of the store have the name {name}: {each}{taken}"


def _shown(time: str) -> str:
    """A time of a file's provenance, for people."""
    try:
        return f"predictions of {datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return "time unknown"

"""From a store to the answers of its models to one suite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from beaufort._core.registry import unknown
from beaufort.data.labels import Grouping, LabelSets, LabelSpace
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
from beaufort.results._namesakes import Namesakes
from beaufort.results.answers import Answers, read_answers
from beaufort.results.rescore import Rescoring, Wanted, stored_space
from beaufort.store import Cell, FileStore, Listing, Store, flat_origins
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition

_ROOM = 2 << 30
"""Maximum bytes of answers kept in memory."""


class ListedStore(NamedTuple):
    """A store, with a listing of its files at one moment."""

    store: Store
    listing: Listing


@dataclass(frozen=True, eq=False)
class Results:
    """The models of a store that have answers to every condition of a suite."""

    suite: Suite
    setting: ResultSetting
    dataset: str
    """What the data set is called."""
    classes: tuple[str, ...]
    """What its classes are called; empty if the store does not say."""
    cells: Mapping[str, Mapping[Condition, Cell]]
    """By model and condition."""
    incomplete: Mapping[str, int]
    """Models that lack conditions, and how many."""
    sources: Mapping[str, ListedStore]
    """The store of each model's answers."""
    origins: tuple[dict[str, Any], ...] = ()
    """Where the answers came from: commands, versions, machines, times."""
    limit: int | None = None
    """Number of images, from the first on, that count; all if None."""
    outputs: int | None = None
    """How many outputs the models have; None if the store does not say."""
    rescored: Mapping[str, Rescoring] = field(default_factory=dict)
    """Models whose answers are scored again from stored logits, and how."""
    stored: bool = False
    """Whether the corrupted pictures were read from disk, as those of CIFAR-10-C are."""
    part_of: str = ""
    """The title of the suite of several data sets that this is one of; empty if it stands alone."""
    notes: tuple[str, ...] = ()
    """What a reader must know: models that share a name, and which of them is meant."""
    others: Mapping[str, Mapping[Condition, Cell]] = field(default_factory=dict)
    """Models of the store that were not asked for, but may be divided by: a baseline is looked for here, too.
    None where answers are scored anew."""

    def space(self, model: str) -> LabelSpace:
        """The label space in which a model's answers are scored."""
        if model in self.rescored:
            return self.rescored[model].space
        return stored_space(self.cells[model])

    @property
    def spaces(self) -> tuple[str, ...]:
        """What counts as which class, and what competes, in words; once if it is so for all models."""
        return tuple(dict.fromkeys(str(self.space(model)) for model in self.models))

    @property
    def by_sets(self) -> bool:
        """Whether an image has a set of labels of which any is right."""
        anew = any(one.truths is not None for one in self.rescored.values())
        return anew or bool(self.setting.scored.truths)

    @property
    def class_count(self) -> int | None:
        """How many classes models choose from; None if that is not known, or not the same for all."""
        counts = {self.space(model).competing or self.outputs or len(self.classes) for model in self.models}
        return (counts.pop() or None) if len(counts) == 1 else None

    @classmethod
    def of(
        cls,
        suite: Suite,
        answers: Mapping[str, Answers],
        *,
        dataset: str = "made",
        classes: Sequence[str] = (),
    ) -> Results:
        """Results that no store holds, from the answers of each model."""
        cells = {
            name: {
                condition: Cell({"name": name}, {"name": dataset}, {"condition": str(condition)})
                for condition in one.conditions
            }
            for name, one in answers.items()
        }
        results = cls(suite, ResultSetting("", None, None), dataset, tuple(classes), cells, {}, {})
        results._read.update(answers)
        return results

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, in alphabetical order."""
        return tuple(self.cells)

    @property
    def possible_baselines(self) -> tuple[str, ...]:
        """The names of all models that these may be divided by: their own, and others of their store."""
        return (*self.cells, *self.others)

    @cached_property
    def _read(self) -> dict[str, Answers]:
        return {}

    def answers(self, model: str) -> Answers:
        """The answers of a model; read at the first call, and kept in memory while there is room."""
        cells = self.cells.get(model) or self.others.get(model)
        if cells is None:
            raise ResultsError(unknown("model of this store", model, dict.fromkeys(self.cells)))
        if model not in self._read:
            anew = self.rescored.get(model)
            read = read_answers(*self.sources[model], cells, self.limit, anew)
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
    labels: str | Path | Grouping | LabelSpace | None = None,
    convention: str | None = None,
    truths: str | Path | LabelSets | None = None,
) -> Results:
    """The answers of a store to one suite of one data set; see `open_parts` for suites of several.

    Args:
        store: a store, its folder or URL.
        suite: a suite, its name or file; the one of the store's last run if None.
        models: only these; a name that several models have means the newest of them.
        seed: of the corruptions; the one of the last run if None.
        labels: another label space, as for `evaluate`; answers are scored anew, from logits that were kept.
        convention: `restricted` or `all`, likewise.
        truths: sets of labels of which any is right, or a file of them, likewise.
    """
    parts = open_parts(
        store, suite=suite, models=models, seed=seed, labels=labels, convention=convention, truths=truths
    )
    return only_part(parts)


def only_part(parts: Sequence[Results]) -> Results:
    """The results of a suite of one data set; an error for those of several."""
    if len(parts) > 1:
        raise ResultsError(
            f"results must be of one data set, got {', '.join(one.suite.name for one in parts)}; name the "
            "suite of one, or use `open_parts`"
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
    truths: str | Path | LabelSets | None = None,
) -> tuple[Results, ...]:
    """The answers of a store to each data set of a suite; one for a suite of one. As `open_results`."""
    wanted = Wanted.of(labels, convention, truths)
    kept = store if isinstance(store, FileStore) else FileStore(store)
    cells = kept.cells()
    if not cells:
        raise ResultsError(
            f"{kept.location} holds no answers; `beaufort run --store {kept.location}` makes some"
        )
    recorded = kept.runs()
    check_registered(kept, suite, recorded)
    runs = [(asked, run) for run in recorded if (asked := suite_of(run))]
    asked = find_suite(kept, suite, runs, cells)
    run = next((run for other, run in reversed(runs) if other.digest == asked.digest), None)
    opener = _Opener(kept, kept.listing(), tuple(cells.values()), models, seed, wanted)
    if not asked.parts:
        return (opener.open(asked, run),)
    return tuple(opener.open(part, _run_of(run, number), asked) for number, part in enumerate(asked.parts))


def _run_of(run: Mapping[str, Any] | None, number: int) -> dict[str, Any] | None:
    """What a run on several data sets was asked for and showed of one of them."""
    if run is None:
        return None
    places = [run.get(name) for name in ("parts", "shown")]
    known = [place[number] for place in places if isinstance(place, list) and number < len(place)]
    return {**run, **{key: value for one in known if isinstance(one, dict) for key, value in one.items()}}


@dataclass(frozen=True)
class _Opener:
    """A store that was looked at, and what is wanted of it."""

    store: FileStore
    listing: Listing
    cells: tuple[Cell, ...]
    models: Sequence[str] | None
    seed: int | None
    wanted: Wanted

    def open(self, asked: Suite, run: Mapping[str, Any] | None, part_of: Suite | None = None) -> Results:
        """The answers to a suite of one data set, of which `run` was the last run.

        A part of another suite is called as it is there, whatever a run before has called its data.
        """
        kept, listing, models, wanted = self.store, self.listing, self.models, self.wanted
        stored = run.get("stored") if run else None
        stored = stored if isinstance(stored, dict) else None
        if stored is not None and "" not in stored and asked.clean:
            asked = asked.without_clean()
        matching = [
            cell
            for cell in self.cells
            if prepared_as(asked, cell) and ("stored" in cell.condition) == (stored is not None)
        ]
        setting = find_setting(kept, asked, matching, run, self.seed, wanted.scored(matching))
        conditions = conditions_by_key(asked, stored)
        found = cells_by_model(matching, setting, conditions, asked.name if part_of else None)
        namesakes = Namesakes(kept, listing, {name: row.values() for name, row in found.items()})
        notes = tuple(namesakes.notes(models))
        complete = {name: row for name, row in sorted(found.items()) if len(row) == len(conditions)}
        if models is not None:
            models = [namesakes.newest(name) or name for name in models]
            for name in models:
                if name not in found:
                    raise ResultsError(unknown(f"model of {kept.location}", name, dict.fromkeys(found)))
            found = {name: found[name] for name in models}
        whole = {name: row for name, row in complete.items() if name in found}
        others = {} if wanted.anew else {name: row for name, row in complete.items() if name not in found}
        lacking = {name: len(conditions) - len(row) for name, row in found.items() if name not in whole}
        if not whole:
            raise ResultsError(
                _nothing_whole(kept, asked, lacking, len(conditions), chosen=models is not None)
            )
        first = next(iter(next(iter(whole.values())).values()))
        origins = _origins(kept, listing, whole)
        classes = tuple(map(str, run.get("classes", ()))) if run else ()
        sources = dict.fromkeys([*whole, *others], ListedStore(kept, listing))
        outputs = run.get("outputs") if run else None
        rescored = {
            name: anew
            for name, row in whole.items()
            if (anew := wanted.rescoring(kept, listing, row, classes)) is not None
        }
        return Results(
            asked,
            setting,
            asked.name if part_of else str(first.data["name"]),
            classes,
            whole,
            lacking,
            sources,
            origins,
            outputs=outputs if isinstance(outputs, int) else None,
            rescored=rescored,
            stored=stored is not None,
            part_of=part_of.title if part_of else "",
            notes=notes,
            others=others,
        )


def _origins(
    store: FileStore, listing: Listing, whole: Mapping[str, Mapping[Condition, Cell]]
) -> tuple[dict[str, Any], ...]:
    pieces = [piece for row in whole.values() for cell in row.values() for piece in listing[cell.fingerprint]]
    distinct: dict[str, dict[str, Any]] = {}
    for *_, origin in store.summaries(pieces):
        for one in flat_origins(origin):
            distinct.setdefault(json.dumps(one, sort_keys=True), one)
    return tuple(distinct.values())


def _nothing_whole(
    store: FileStore, suite: Suite, lacking: Mapping[str, int], count: int, *, chosen: bool
) -> str:
    """Why there are no results; if models were `chosen`, others may have all of their answers."""
    if not lacking:
        return (
            f"{store.location} has no answers to {suite.name}; `beaufort run --suite {suite.name}` makes them"
        )
    name, lacks = min(lacking.items(), key=lambda item: item[1])
    way_out = "the same `beaufort run` again makes what is missing"
    if chosen:
        return (
            f"{name} of {store.location} lacks {lacks} of the {count} conditions of {suite.name}; {way_out}"
        )
    return (
        f"no model of {store.location} has answers to all {count} conditions of {suite.name}: {name} lacks "
        f"{lacks}; {way_out}"
    )

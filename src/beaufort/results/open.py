"""Open the results of a store, for all models or for one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from beaufort._core.errors import BeaufortError
from beaufort._core.registry import unknown_message
from beaufort.data.labels import Grouping, LabelSets, LabelSpace, check_convention, read_label_sets
from beaufort.results._match import (
    ResultsError,
    ResultSetting,
    Scored,
    cells_by_model,
    check_registered,
    conditions_by_key,
    find_setting,
    find_suite,
    order_of,
    prepared_as,
    suite_of,
)
from beaufort.results.bundle import open_store
from beaufort.results.other_models import ConditionFolders, ListedStore, OtherModels, Row, names_in_folders
from beaufort.results.rescore import WantedScoring
from beaufort.results.results import Results
from beaufort.store import Cell, FileStore, Listing, Piece, StoreError, flat_origins
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition

_BETWEEN = "::"
"""Separator of a store and a model."""
_MAX_KEPT = 20_000
"""Number of files whose provenance is kept in memory."""


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
    candidates: Collection[str] | None = None,
) -> tuple[Results, ...]:
    """Open the predictions of a store for each dataset of a suite.

    Arguments are those of `open_results`. With `candidates`, models that are neither selected nor among these
    names may be left out, which is faster in a large store.
    """
    if convention is not None:
        check_convention(convention)
    if not isinstance(label_sets, LabelSets | None):
        label_sets = read_label_sets(label_sets)
    wanted = WantedScoring(labels, convention, label_sets)
    return _Opener(store, seed, wanted).open_parts(suite, models, candidates)


def stored_suites(store: str | Path | FileStore) -> tuple[Suite, ...]:
    """Return the suites of a store's runs, that of the last run first; of equal names, the last."""
    kept = open_store(store)
    found: dict[str, Suite] = {}
    for run in reversed(kept.runs()):
        if (suite := suite_of(run)) is not None:
            found.setdefault(suite.name, suite)
    return tuple(found.values())


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
    parsed = [_Target.parse(text, role, store) for text, role in targets]
    openers: dict[str, _Opener] = {}
    names: dict[str, list[str]] = {}
    for one in parsed:
        openers.setdefault(one.location, _Opener(one.location, seed, WantedScoring()))
        names.setdefault(one.location, []).append(one.model)
    candidates = {location: some if all(some) else None for location, some in names.items()}
    return [_open_target(one, suite, openers[one.location], candidates[one.location]) for one in parsed]


class _Target(NamedTuple):
    """A model of a store, as named by the user."""

    text: str
    role: str
    location: str
    model: str
    """Empty for the only model of the store."""

    @classmethod
    def parse(cls, text: str, role: str, store: str) -> _Target:
        location, between, model = text.partition(_BETWEEN)
        if not between:
            location, model = (text, "") if _is_store(text) else (store, text)
        elif not location or not model:
            raise ResultsError(
                f"result must be STORE{_BETWEEN}MODEL, a store of one model, or the name of a model, got "
                f"{text!r}"
            )
        return cls(text, role, location, model)


def _open_target(
    target: _Target, suite: str | None, opener: _Opener, candidates: Collection[str] | None
) -> tuple[Results, ...]:
    text, role, location, model = target
    try:
        parts = opener.open_parts(suite, [model] if model else None, candidates)
    except ResultsError as error:
        if _BETWEEN in text or not str(error).startswith("unknown model"):
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
    return "://" in text or (Path(text).is_dir() and open_store(text).has_predictions())


def _run_of(run: Mapping[str, Any] | None, number: int) -> dict[str, Any] | None:
    """Return the record of a run on several datasets, for one of them."""
    if run is None:
        return None
    places = [run.get(name) for name in ("parts", "shown")]
    known = [place[number] for place in places if isinstance(place, list) and number < len(place)]
    return {**run, **{key: value for one in known if isinstance(one, dict) for key, value in one.items()}}


class _Contents(NamedTuple):
    """Cells that were read from a store: all of them, or those in some folders."""

    listing: Listing
    cells: Mapping[str, Cell]
    provenance: Mapping[Piece, Mapping[str, Any]]
    """Provenance of some files."""
    whole: bool
    """Whether these are all cells of the store."""

    @classmethod
    def read(cls, store: FileStore, listing: Listing, *, whole: bool) -> _Contents:
        cells: dict[str, Cell] = {}
        provenance: dict[Piece, Mapping[str, Any]] = {}
        for piece, footer in store.first_footers(listing):
            cells[piece.fingerprint] = footer.cell
            if len(provenance) < _MAX_KEPT:
                provenance[piece] = footer.provenance
        return cls(listing, cells, provenance, whole)


class _Group(NamedTuple):
    """The cells of a store for a suite of one dataset."""

    suite: Suite
    setting: ResultSetting
    conditions: Mapping[str, Condition]
    cells: Mapping[str, dict[Condition, Cell]]
    """By model, also of models that lack some conditions."""
    namesakes: _Namesakes
    stored: bool
    """Whether the images were read as a published set stores them."""

    def complete(self, cells: Mapping[str, dict[Condition, Cell]]) -> dict[str, dict[Condition, Cell]]:
        """Return the models that have all conditions, in alphabetical order."""
        return {name: row for name, row in sorted(cells.items()) if len(row) == len(self.conditions)}


class _RequestedPart(NamedTuple):
    """A suite of one dataset, with the record of its last run."""

    suite: Suite
    run: Mapping[str, Any] | None
    dataset: str | None = None
    """Name in the suite that it is a part of, whatever an earlier run has called the data."""


class _Opener:
    """A store that is read once, and what is wanted of it.

    If models are named, or the suite has few of the conditions, only their folders are read: a store may have
    many others. Whatever cannot be decided from these reads the whole store.
    """

    def __init__(self, store: str | Path | FileStore, seed: int | None, wanted: WantedScoring) -> None:
        self.store = open_store(store)
        self.seed = seed
        self.wanted = wanted
        self._groups: dict[tuple[str, str | None, int], _Group] = {}
        self._read: dict[tuple[str, frozenset[str] | None], _Contents] = {}
        self._whole: _Contents | None = None

    @cached_property
    def runs(self) -> Sequence[Mapping[str, Any]]:
        return self.store.runs()

    @property
    def whole(self) -> _Contents:
        """All cells of the store."""
        if self._whole is None:
            self._whole = _Contents.read(self.store, self.store.listing(), whole=True)
            if not self._whole.cells:
                location = self.store.location
                raise ResultsError(
                    f"{location} has no predictions; create them with `beaufort run --store {location}`"
                )
        return self._whole

    def open_parts(
        self,
        suite: str | Suite | None,
        models: Sequence[str] | None,
        candidates: Collection[str] | None = None,
    ) -> tuple[Results, ...]:
        """Return the predictions for each dataset of a suite, or of the last run's suite.

        Args:
            suite: the suite; that of the last run if None.
            models: names of the selected models; all if None.
            candidates: names of all models that matter; those of `models` if None. Others may be left out.
        """
        runs = [(requested, run) for run in self.runs if (requested := suite_of(run))]
        cells = {} if runs else self.whole.cells
        check_registered(self.store, suite, self.runs)
        requested = find_suite(self.store, suite, runs, cells)
        if requested.streamed:
            raise ResultsError(
                f"{requested} is a suite of streams; `beaufort run` prints its scores again, and "
                "beaufort.results.stream_scores(store) returns them"
            )
        run = next((run for other, run in reversed(runs) if other.digest == requested.digest), None)
        title = requested.title if requested.parts else ""
        parts = [
            _RequestedPart(part, _run_of(run, number), part.name)
            for number, part in enumerate(requested.parts)
        ] or [_RequestedPart(requested, run)]
        some = self._some(parts, models if candidates is None else candidates)
        if some is not None:
            with contextlib.suppress(BeaufortError):
                opened = tuple(self._open(part, title, models, some) for part in parts)
                if all(
                    _is_certain(one, part.run, self.seed) for one, part in zip(opened, parts, strict=True)
                ):
                    return opened
        return tuple(self._open(part, title, models, self.whole) for part in parts)

    def _some(self, parts: Sequence[_RequestedPart], models: Collection[str] | None) -> _Contents | None:
        """Return the cells in the folders of some models and of the suite's conditions.

        None if the whole store was read already, or has to be, to select the data and the seed.
        """
        if self._whole is not None or self.wanted.rescores or any(part.run is None for part in parts):
            return None
        with contextlib.suppress(StoreError):  # raised again when the whole store is read
            return self._in_folders([part.suite for part in parts], models)
        return None

    def _in_folders(self, suites: Sequence[Suite], models: Collection[str] | None) -> _Contents | None:
        names = None if models is None else frozenset(names_in_folders(models))
        key = ("".join(suite.digest for suite in suites), names)
        if key not in self._read:
            folders = ConditionFolders(one for suite in suites for one in suite.conditions("x"))
            if names is None and not folders.useful:
                return None
            listing = self.store.listing_of(names, folders if folders.useful else None)
            self._read[key] = _Contents.read(self.store, listing, whole=False)
        return self._read[key]

    def _group(self, part: _RequestedPart, contents: _Contents) -> _Group:
        """Return the cells of all models for a suite of one dataset."""
        key = (part.suite.digest, part.dataset, id(contents))
        if key not in self._groups:
            requested, run = part.suite, part.run
            stored = run.get("stored") if run else None
            stored = stored if isinstance(stored, dict) else None
            if stored is not None and "" not in stored and requested.clean:
                requested = requested.without_clean()
            matching = _matching(requested, contents.cells, stored=stored is not None)
            scored = self.wanted.scored(matching)
            setting = find_setting(self.store, requested, matching, run, self.seed, scored)
            conditions = conditions_by_key(requested, stored)
            found = cells_by_model(matching, setting, conditions, part.dataset)
            namesakes = _Namesakes(
                self.store, contents.listing, {name: row.values() for name, row in found.items()}
            )
            self._groups[key] = _Group(requested, setting, conditions, found, namesakes, stored is not None)
        return self._groups[key]

    def _open(
        self, part: _RequestedPart, part_of: str, models: Sequence[str] | None, contents: _Contents
    ) -> Results:
        """Return the predictions for a suite of one dataset."""
        kept, listing, wanted, run = self.store, contents.listing, self.wanted, part.run
        group = self._group(part, contents)
        requested, found, count = group.suite, group.cells, len(group.conditions)
        notes = tuple(group.namesakes.notes(models))
        complete = group.complete(found)
        if models is not None:
            models = [group.namesakes.newest(name) or name for name in models]
            for name in models:
                if name not in found:
                    raise ResultsError(unknown_message(f"model of {kept.location}", name, found))
            found = {name: found[name] for name in models}
        whole = {name: row for name, row in complete.items() if name in found}
        lacking = {name: count - len(row) for name, row in found.items() if name not in whole}
        if not whole:
            raise _incomplete(kept, requested, lacking, count, chosen=models is not None)
        first = next(iter(next(iter(whole.values())).values()))
        classes = tuple(map(str, run.get("classes", ()))) if run else ()
        outputs = run.get("outputs") if run else None
        rescored = {
            name: one
            for name, row in whole.items()
            if (one := wanted.rescoring(kept, listing, row, classes)) is not None
        }
        source = ListedStore(kept, listing)
        others: Mapping[str, Row] = {}
        if not contents.whole:
            others = OtherModels(found, source, lambda name: self._complete(part, group, listing, name))
        elif not wanted.rescores:
            others = {name: row for name, row in complete.items() if name not in found}
        return Results(
            requested,
            group.setting,
            part.dataset or str(first.data["name"]),
            classes,
            whole,
            lacking,
            dict.fromkeys([*whole, *(others if contents.whole else ())], source),
            self._origins((cell for row in whole.values() for cell in row.values()), contents),
            outputs=outputs if isinstance(outputs, int) else None,
            rescored=rescored,
            stored=group.stored,
            part_of=part_of,
            notes=notes,
            others=others,
        )

    def _complete(
        self, part: _RequestedPart, group: _Group, listing: Listing, name: str | None
    ) -> Mapping[str, Row]:
        """Return the complete models of a name, or all for None, and add their files to a listing."""
        contents = self.whole if name is None else self._in_folders([part.suite], [name])
        assert contents is not None
        for fingerprint, pieces in contents.listing.items():
            listing.setdefault(fingerprint, pieces)
        matching = _matching(group.suite, contents.cells, stored=group.stored)
        return group.complete(cells_by_model(matching, group.setting, group.conditions, part.dataset))

    def _origins(self, cells: Iterable[Cell], contents: _Contents) -> tuple[dict[str, Any], ...]:
        distinct: dict[str, dict[str, Any]] = {}
        for piece in (piece for cell in cells for piece in contents.listing[cell.fingerprint]):
            known = contents.provenance.get(piece)
            origins = [known] if known is not None else [one[-1] for one in self.store.summaries([piece])]
            for one in (one for origin in origins for one in flat_origins(origin)):
                distinct.setdefault(json.dumps(one, sort_keys=True), one)
        return tuple(distinct.values())


def _matching(requested: Suite, cells: Mapping[str, Cell], *, stored: bool) -> list[Cell]:
    """Return the cells whose images were prepared and created as those of a suite."""
    return [
        cell
        for cell in cells.values()
        if prepared_as(requested, cell) and ("stored" in cell.condition) == stored
    ]


def _is_certain(results: Results, run: Mapping[str, Any] | None, seed: int | None) -> bool:
    """Return whether results from some folders are those from the whole store.

    The models must be complete, and the setting that of the run.
    """
    assert run is not None
    data = run.get("data", {})
    setting = ResultSetting(
        str(data.get("digest")),
        order_of(data),
        run.get("seed") if seed is None else seed,
        Scored.of(run.get("labels") or {}),
    )
    return not results.incomplete and results.setting == setting and setting.seed is not None


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

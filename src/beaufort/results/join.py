"""Results of several stores side by side, if they answer the same question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from beaufort.results._match import ResultsError
from beaufort.results.open import ListedStore, Results
from beaufort.results.rescore import Rescoring
from beaufort.store import Cell
from beaufort.suites.conditions import Condition


def pair_parts(targets: Sequence[Sequence[Results]]) -> list[tuple[Results, ...]]:
    """The results of several models on each data set of a suite side by side."""
    names = [[results.suite.name for results in target] for target in targets]
    counts = {len(target) for target in targets}
    if len(counts) > 1 or (counts != {1} and any(other != names[0] for other in names[1:])):
        raise ResultsError(
            "results of suites with other data sets cannot be compared: "
            f"{' and '.join(', '.join(some) for some in names)}; evaluate all on the same suite"
        )
    return list(zip(*targets, strict=True))


def join_results(parts: Sequence[Results]) -> Results:
    """The models of several stores side by side; a `ResultsError` says why they cannot be compared.

    Models of one name get the name of their store behind it, or its place if that does not help. If they are
    the same model, its name alone can be divided by, and means the answers of the first store. So it is with
    those that are only there to be divided by; one of these that has the name of a model that was asked for
    is left out.
    """
    first = parts[0]
    for other in parts[1:]:
        _check_comparable(first, other)
    stores = _stores_by_name(parts)
    cells: dict[str, Mapping[Condition, Cell]] = {}
    sources: dict[str, ListedStore] = {}
    lacking: dict[str, int] = {}
    rescored: dict[str, Rescoring] = {}
    others: dict[str, Mapping[Condition, Cell]] = {}
    for part in parts:
        for name in part.models:
            known = name if len(stores[name]) == 1 else f"{name} ({_called(part, name, parts)})"
            cells[known], sources[known] = part.cells[name], part.sources[name]
            if known != name and name not in part.rescored and _same([one.cells for one in parts], name):
                others.setdefault(name, part.cells[name])
                sources.setdefault(name, part.sources[name])
            if name in part.rescored:
                rescored[known] = part.rescored[name]
        lacking.update(part.incomplete)
    for part in parts:
        for name in part.others.keys() - stores.keys():
            same = _same([one.others for one in parts], name)
            known = name if same else f"{name} ({_called(part, name, parts)})"
            others[known], sources[known] = part.others[name], part.sources[name]
    origins = {json.dumps(one, sort_keys=True): one for part in parts for one in part.origins}
    classes = max((part.classes for part in parts), key=len)
    return Results(
        first.suite,
        first.setting,
        first.dataset,
        classes,
        cells,
        lacking,
        sources,
        tuple(origins.values()),
        outputs=next((part.outputs for part in parts if part.outputs), None),
        rescored=rescored,
        stored=first.stored,
        part_of=first.part_of,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        others=dict(sorted(others.items())),
    )


def _stores_by_name(parts: Sequence[Results]) -> dict[str, set[str]]:
    """The stores that have a model of a name, of those that were asked for."""
    stores: dict[str, set[str]] = {}
    for part in parts:
        for name in part.models:
            stores.setdefault(name, set()).add(part.sources[name].store.location)
    return stores


def _same(rows: Sequence[Mapping[str, Mapping[Condition, Cell]]], model: str) -> bool:
    """Whether the models of a name are the same in all stores that have one."""
    found = [list(row[model].values()) for row in rows if model in row]
    return all(cells == found[0] for cells in found)


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
    if _pictures(first) != _pictures(other):
        raise ResultsError(
            "results on other pictures cannot be compared: some lay corrupted on a disk, others were made in "
            "memory or lay on another; evaluate both on the same"
        )
    if first.setting.data != other.setting.data:
        raise ResultsError(
            f"results on other data cannot be compared: {first.dataset} ({first.setting.data[:12]}) and "
            f"{other.dataset} ({other.setting.data[:12]}); evaluate both on the same images"
        )
    if not _scored_alike(first, other):
        raise ResultsError(
            "results that are scored in different ways cannot be compared: "
            f"{'; '.join(first.spaces)} and {'; '.join(other.spaces)}; use the same --convention and labels"
        )
    if first.setting.seed != other.setting.seed:
        raise ResultsError(
            f"results of the seeds {first.setting.seed} and {other.setting.seed} cannot be compared: the "
            "corruptions differ; evaluate both with the same seed"
        )


def _pictures(results: Results) -> dict[str, str]:
    """The digests of stored pictures by what was done to them; none if they were made in memory."""
    row = next(iter(results.cells.values()))
    return {c.done: str(cell.condition["stored"]) for c, cell in row.items()} if results.stored else {}


def _scored_alike(first: Results, other: Results) -> bool:
    """Whether the same is right and the same competes; all outputs of one may be the classes of another."""
    one, two = first.setting.scored, other.setting.scored
    if one.truths != two.truths or one.convention == two.convention:
        return one == two
    return not (one.convention and two.convention) and first.class_count == other.class_count

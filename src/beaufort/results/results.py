"""Results: the predictions of models on one suite, from stores or from memory."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from beaufort._core.registry import unknown_message
from beaufort.data.labels import LabelSpace
from beaufort.results._match import ResultsError, ResultSetting
from beaufort.results.other_models import ListedStore, OtherModels
from beaufort.results.predictions import Predictions, read_predictions
from beaufort.results.rescore import Rescoring, stored_space
from beaufort.store import Cell
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition

_MAX_BYTES = 2 << 30
"""Largest size of predictions that are kept in memory."""

Cells = Mapping[str, Mapping[Condition, Cell]]
"""By model and condition."""


@dataclass(frozen=True, eq=False)
class Results:
    """The models that have predictions under every condition of a suite."""

    suite: Suite
    setting: ResultSetting
    dataset: str
    """Name of the dataset."""
    classes: tuple[str, ...]
    """Names of its classes; empty if the store does not have them."""
    cells: Cells
    incomplete: Mapping[str, int]
    """Models that lack conditions, with their number."""
    sources: Mapping[str, ListedStore | Predictions]
    """Store of each model's predictions, or the predictions themselves."""
    origins: tuple[dict[str, Any], ...] = ()
    """Provenance of the predictions: commands, versions, machines, times."""
    limit: int | None = None
    """Number of images, from the first on, that count; all if None."""
    outputs: int | None = None
    """Number of outputs of the models; None if the store does not have it."""
    rescored: Mapping[str, Rescoring] = field(default_factory=dict)
    """Models whose predictions are rescored from stored logits, and how."""
    stored: bool = False
    """Whether the corrupted images were read from disk, as those of CIFAR-10-C are."""
    part_of: str = ""
    """Title of the suite of several datasets that this one belongs to; empty if none."""
    notes: tuple[str, ...] = ()
    """Notes for the reader, such as models that share a name."""
    others: Cells = field(default_factory=dict)
    """Models of the store that were not selected, but may be the baseline. Empty if predictions are scored
    again."""

    @classmethod
    def of(
        cls,
        suite: Suite,
        predictions: Mapping[str, Predictions],
        *,
        dataset: str = "made",
        classes: Sequence[str] = (),
    ) -> Results:
        """Return results in memory, from the predictions of each model."""
        cells = {
            name: {
                condition: Cell({"name": name}, {"name": dataset}, {"condition": str(condition)})
                for condition in one.conditions
            }
            for name, one in predictions.items()
        }
        setting = ResultSetting("", None, None)
        return cls(suite, setting, dataset, tuple(classes), cells, {}, dict(predictions))

    def __repr__(self) -> str:
        return f"<Results of {', '.join(self.models)} on {self.suite}, {self.dataset}>"

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, in alphabetical order."""
        return tuple(self.cells)

    @property
    def possible_baselines(self) -> tuple[str, ...]:
        """The names of all models that may be the baseline: these, and others in their store."""
        return tuple(self.baseline_cells)

    @property
    def baseline_cells(self) -> Mapping[str, Mapping[Condition, Cell]]:
        """All models that may be the baseline; looking up one name does not read the others."""
        return ChainMap(self.others, self.cells)  # type: ignore[arg-type]  # read only; cells come first

    def space(self, model: str) -> LabelSpace:
        """Return the label space in which a model's predictions are scored."""
        if model in self.rescored:
            return self.rescored[model].space
        return stored_space(self.cells[model])

    @property
    def spaces(self) -> tuple[str, ...]:
        """Descriptions of the distinct label spaces of the models."""
        return tuple(dict.fromkeys(str(self.space(model)) for model in self.models))

    @property
    def by_sets(self) -> bool:
        """Whether an image has a set of labels of which any is right."""
        rescored = any(one.label_sets is not None for one in self.rescored.values())
        return rescored or bool(self.setting.scored.label_sets)

    @property
    def class_count(self) -> int | None:
        """Number of classes of the models; None if it is unknown, or differs between models."""
        counts = {
            self.space(model).class_columns or self.outputs or len(self.classes) for model in self.models
        }
        return (counts.pop() or None) if len(counts) == 1 else None

    @cached_property
    def _read(self) -> dict[str, Predictions]:
        return {}

    def _source(self, model: str) -> ListedStore | Predictions:
        if model not in self.sources and isinstance(self.others, OtherModels):
            return self.others.store
        return self.sources[model]

    def predictions(self, model: str) -> Predictions:
        """Return the predictions of a model; those of a store are read once and cached."""
        cells = self.cells.get(model) or self.others.get(model)
        if cells is None:
            raise ResultsError(unknown_message("model of this store", model, self.cells))
        source = self._source(model)
        if isinstance(source, Predictions):
            return source
        if model not in self._read:
            read = read_predictions(*source, cells, self.limit, self.rescored.get(model))
            while self._read and sum(one.size for one in self._read.values()) + read.size > _MAX_BYTES:
                self._read.pop(next(iter(self._read)))
            self._read[model] = read
        return self._read[model]


def pair_parts(targets: Sequence[Sequence[Results]]) -> list[tuple[Results, ...]]:
    """Return the results of several models on each dataset of a suite."""
    names = [[results.suite.name for results in target] for target in targets]
    counts = {len(target) for target in targets}
    if len(counts) > 1 or (counts != {1} and any(other != names[0] for other in names[1:])):
        raise ResultsError(
            f"cannot compare results on {' and '.join(', '.join(some) for some in names)}; evaluate all "
            "models on the same suite"
        )
    return list(zip(*targets, strict=True))


def join_results(parts: Sequence[Results]) -> Results:
    """Join the models of several results; a `ResultsError` says why they cannot be compared.

    Models of one name get the name of their store behind it, or its path if that does not help. If they are
    the same model, its name alone can be the baseline, and means the predictions of the first store. The same
    holds for models that are only there as baselines; one of these that has the name of a selected model
    is left out.
    """
    first = parts[0]
    for other in parts[1:]:
        _check_comparable(first, other)
    one_store = _others_of_one_store(parts)
    if one_store is None:
        parts = [_with_all_models(part) for part in parts]
    locations: dict[str, set[str]] = {}
    for part in parts:
        for name in part.models:
            locations.setdefault(name, set()).add(_location(part, name, parts))
    cells: dict[str, Mapping[Condition, Cell]] = {}
    sources: dict[str, ListedStore | Predictions] = {}
    rescored: dict[str, Rescoring] = {}
    others: dict[str, Mapping[Condition, Cell]] = {}
    for part in parts:
        for name in part.models:
            known = name if len(locations[name]) == 1 else _distinct_name(part, name, parts)
            cells[known], sources[known] = part.cells[name], part.sources[name]
            if known != name and name not in part.rescored and _same_model(parts, name):
                others.setdefault(name, part.cells[name])
                sources.setdefault(name, part.sources[name])
            if name in part.rescored:
                rescored[known] = part.rescored[name]
    for part in parts if one_store is None else ():
        for name in part.others.keys() - locations.keys():
            known = name if _same_model(parts, name) else _distinct_name(part, name, parts)
            others[known], sources[known] = part.others[name], part.sources[name]
    origins = {json.dumps(one, sort_keys=True): one for part in parts for one in part.origins}
    return Results(
        first.suite,
        first.setting,
        first.dataset,
        max((part.classes for part in parts), key=len),
        cells,
        {name: count for part in parts for name, count in part.incomplete.items()},
        sources,
        tuple(origins.values()),
        outputs=next((part.outputs for part in parts if part.outputs), None),
        rescored=rescored,
        stored=first.stored,
        part_of=first.part_of,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        others=dict(sorted(others.items())) if one_store is None else one_store.without(locations),
    )


def _others_of_one_store(parts: Sequence[Results]) -> OtherModels | None:
    """Return the other models of the results if all are of one store, and were not read yet."""
    found = [part.others for part in parts if isinstance(part.others, OtherModels)]
    if len(found) < len(parts) or len({id(one.store.store) for one in found}) > 1:
        return None
    return found[0]


def _with_all_models(results: Results) -> Results:
    """Return results whose other models were read."""
    others = results.others
    if not isinstance(others, OtherModels):
        return results
    return replace(
        results, others=dict(others), sources={**results.sources, **dict.fromkeys(others, others.store)}
    )


def _location(part: Results, model: str, parts: Sequence[Results]) -> str:
    """Return the location of a model's predictions: a store, or the number of the results in memory."""
    source = part.sources[model]
    if isinstance(source, ListedStore):
        return source.store.location
    return f"results {next(i for i, one in enumerate(parts, 1) if one.sources.get(model) is source)}"


def _distinct_name(part: Results, model: str, parts: Sequence[Results]) -> str:
    """A model's name with the last part of its store's location; all of it if another store has the same."""
    places = {_location(one, model, parts) for one in parts if model in one.sources}
    here = _location(part, model, parts)
    short = [place.rstrip("/").rpartition("/")[2] for place in places]
    last = here.rstrip("/").rpartition("/")[2]
    return f"{model} ({last if short.count(last) == 1 else here})"


def _same_model(parts: Sequence[Results], model: str) -> bool:
    """Whether a name stands for one model in all stores that have it."""
    if any(isinstance(part.sources.get(model), Predictions) for part in parts):
        return False
    selected = [part.cells[model] for part in parts if model in part.cells]
    rows = selected or [part.others[model] for part in parts if model in part.others]
    return all(list(row.values()) == list(rows[0].values()) for row in rows)


def _check_comparable(first: Results, other: Results) -> None:
    if first.suite.digest != other.suite.digest:
        a, b = str(first.suite), str(other.suite)
        differ = f"{a} and {b}" if a != b else f"two different suites named {a}"
        raise ResultsError(f"results of {differ} cannot be compared; evaluate both on the same suite")
    if _stored_digests(first) != _stored_digests(other):
        raise ResultsError(
            "results on different corrupted images cannot be compared: some were read from disk, others were "
            "created in memory or read from another dataset; evaluate both on the same images"
        )
    data = [one.setting.data or one.dataset for one in (first, other)]
    if data[0] != data[1]:
        raise ResultsError(
            f"results on different data cannot be compared: {first.dataset} ({data[0][:12]}) and "
            f"{other.dataset} ({data[1][:12]}); evaluate both on the same images"
        )
    if not _scored_alike(first, other):
        raise ResultsError(
            "results with different labels cannot be compared: "
            f"{'; '.join(first.spaces)} and {'; '.join(other.spaces)}; use the same --labels"
        )
    if first.setting.seed != other.setting.seed:
        raise ResultsError(
            f"results of the seeds {first.setting.seed} and {other.setting.seed} cannot be compared, because "
            "the corruptions differ; evaluate both with the same seed"
        )


def _stored_digests(results: Results) -> dict[str, str]:
    """Return the digests of stored images by condition; empty for images that were created in memory."""
    row = next(iter(results.cells.values()))
    return {c.done: str(cell.condition["stored"]) for c, cell in row.items()} if results.stored else {}


def _scored_alike(first: Results, other: Results) -> bool:
    """Whether the same is right and the same competes; all outputs of one may be the classes of another."""
    one, two = first.setting.scored, other.setting.scored
    if one.label_sets != two.label_sets or one.convention == two.convention:
        return one == two
    return not (one.convention and two.convention) and first.class_count == other.class_count

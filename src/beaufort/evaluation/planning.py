"""The plan of a run: all cells (model × condition), and the ranges of images that each lacks."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_count
from beaufort.corruptions import SCALES
from beaufort.data import Problem, start_decoder_server
from beaufort.data.labels import DatasetLabels, Grouping, LabelSpace, ModelOutputs, find_label_space
from beaufort.data.objects import Data
from beaufort.evaluation.arguments import Conditions, Models, as_lazy_models, as_suite, validate_store_seed
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.model_checks import check_before_run
from beaufort.evaluation.options import RunOptions
from beaufort.evaluation.preflight import Requirements
from beaufort.evaluation.sources import ImageSource, Sources, find_sources
from beaufort.models import Model, ModelSpec
from beaufort.store import Cell, FileStore, Listing, Store, StoreError, read_state
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition
from beaufort.suites.shifts import Demanding

Range = tuple[int, int]
Labels = str | Path | Grouping | LabelSpace | None
"""How labels and outputs are matched; see `find_label_space`."""
Facts = dict[str, Any]
T = TypeVar("T")

_READERS = 16
"""Number of cells read concurrently, to hide the latency of a remote store."""


class _Lazy(Generic[T]):
    """A value that is computed once, by the first thread that needs it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._lock = Lock()

    def __call__(self) -> T:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


@dataclass(frozen=True, eq=False)
class PlannedCell:
    """One model under one condition, and the ranges of images without a stored prediction."""

    model: LazyModel
    condition: Condition
    facts: tuple[Facts, _Lazy[Facts], _Lazy[Facts]]
    """Facts of the model, the data and the condition; digests are computed when they are needed."""
    gaps: tuple[Range, ...]
    space: LabelSpace
    source: ImageSource
    source_index: int = 0
    """Index of the source in the plan."""

    @cached_property
    def cell(self) -> Cell:
        """Cell of the store."""
        model, data, condition = self.facts
        return Cell(model, data(), condition())

    @property
    def images(self) -> int:
        """Number of images without a prediction."""
        return sum(stop - start for start, stop in self.gaps)

    def gaps_within(self, start: int, stop: float) -> list[Range]:
        """Return the parts of the gaps within a range."""
        clipped = ((max(a, start), int(min(b, stop))) for a, b in self.gaps)
        return [(a, b) for a, b in clipped if a < b]


@dataclass(frozen=True)
class Plan:
    """All cells of a run, including those that are complete."""

    sources: tuple[ImageSource, ...]
    """One for each dataset, and for each condition of stored images."""
    cells: tuple[PlannedCell, ...]
    listing: Listing
    """Files of the store when the plan was made."""
    store: Store
    suite: Suite | None = None
    """Suite; None for a list of conditions."""
    options: RunOptions = field(default_factory=RunOptions)
    warnings: tuple[str, ...] = ()
    """Likely mistakes found by checks of the models."""

    @property
    def source(self) -> ImageSource:
        """The first source; there is only one unless the suite has several datasets."""
        return self.sources[0]

    @property
    def parts(self) -> list[Sequence[PlannedCell]]:
        """Cells of each dataset of the suite; empty without a suite."""
        if self.suite is None:
            return []
        if not self.suite.parts:
            return [self.cells]
        return [[cell for cell in self.cells if cell.source.suite is part] for part in self.suite.parts]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems found when the data were opened; these images are not evaluated."""
        return tuple(dict.fromkeys(one for source in self.sources for one in source.dataset.problems))

    @property
    def images(self) -> int:
        """Number of missing predictions, over all cells."""
        return sum(cell.images for cell in self.cells)

    @property
    def reused(self) -> int:
        """Number of cells that are complete in the store."""
        return sum(not cell.gaps for cell in self.cells)

    def estimate_seconds(self) -> float:
        """Estimate the time of the missing predictions on this machine, from one batch of each model.

        Attacks are counted with all of their steps.
        """
        todo: dict[LazyModel, dict[int, int]] = {}
        for cell in self.cells:
            if cell.gaps:
                if cell.model.spec.outcomes:
                    continue  # a chat model, whose requests may be paid
                passes = shift.passes if isinstance(shift := cell.condition.shift, Demanding) else 1
                one = todo.setdefault(cell.model, {})
                one[cell.source_index] = one.get(cell.source_index, 0) + passes * cell.images
        seconds = 0.0
        for model, images in todo.items():
            seconds += _seconds_per_image(model.load(), self.sources[min(images)]) * sum(images.values())
            model.unload()
        return seconds


def _seconds_per_image(model: Model, source: ImageSource) -> float:
    from beaufort.evaluation.backends import CpuBackend

    _, first = source.first_image
    batch = np.repeat(first[None], min(CpuBackend.batch_size(first.size), source.count), axis=0)
    model(batch)  # the first call is slower
    start = time.perf_counter()
    model(batch)
    return (time.perf_counter() - start) / len(batch)


def plan(
    models: Models,
    suite: Conditions,
    data: Data,
    store: str | Path | Store,
    *,
    limit: int | None = None,
    labels: Labels = None,
    seed: int = 0,
    options: RunOptions | None = None,
    keep_models: bool = False,
) -> Plan:
    """Return what `evaluate` would do with the same arguments.

    Files of the catalog are downloaded, and a `NotReadyError` lists everything that is missing. Models given
    as strings are loaded for their specs, one after the other. With `keep_models`,
    all models stay in memory; otherwise at most one.
    """
    options = (options or RunOptions()).with_label_sets()
    found = as_suite(suite, options.prepare)
    named = found if isinstance(found, Suite) else None
    if labels is not None and named is not None and named.parts:
        raise OptionError(f"labels requires a suite of one dataset; {named} has several")
    lazy = as_lazy_models(models)
    runs_here, keep_models = keep_models, keep_models or len(lazy) == 1  # one model is not loaded again
    limit = None if limit is None else validate_count("limit", limit)
    seed = validate_store_seed(seed)
    needs = Requirements()
    sources = needs.get("the data", lambda: find_sources(found, data, limit, seed, options))
    if runs_here and sources and any(model.device.startswith("cuda") for model in lazy):
        _start_decoders(sources[0][0])  # while the models are loaded
    for model in lazy:  # last, because some take minutes to load
        needs.get(f"the model {model.text}", lambda model=model: model.spec)  # type: ignore[misc]
        if not keep_models:
            model.unload()
    if sources is None or needs.missing:
        needs.files(found.conditions() if isinstance(found, Suite) else found)
        needs.check()
    assert sources is not None
    opened = as_store(store)
    planned = _make_plan(lazy, sources, opened, labels, options, named, keep_models=keep_models)
    needs.files(cell.condition for cell in planned.cells if cell.gaps and not cell.source.stored)
    if planned.images:
        needs.room(opened, _needed_bytes(planned))
    needs.check()
    return planned


def check_models(planned: Plan, *, runs_here: bool) -> Plan:
    """Check the models that lack predictions, and return the plan with the warnings.

    A model whose predictions depend on the batch raises an error, unless the options allow it. The accuracy
    is measured only if the models run in this process (`runs_here`).
    """
    return replace(planned, warnings=tuple(_model_warnings(planned, runs_here=runs_here)))


def _model_warnings(planned: Plan, *, runs_here: bool) -> Iterator[str]:
    chosen: dict[LazyModel, PlannedCell] = {}
    missing: dict[LazyModel, int] = {}
    for cell in planned.cells:
        if cell.gaps and not cell.model.stateful:
            missing[cell.model] = missing.get(cell.model, 0) + cell.images
            if cell.model not in chosen or (cell.condition.clean and not chosen[cell.model].condition.clean):
                chosen[cell.model] = cell
    for model, cell in chosen.items():
        yield from check_before_run(
            model.load(),
            cell.source,
            cell.space,
            allow_batch_dependence=planned.options.allow_batch_dependence,
            missing=missing[model] if runs_here else 0,
        )
        if not runs_here and len(chosen) > 1:
            model.unload()


def as_store(store: str | Path | Store) -> Store:
    """Return the store at a location, or the store itself."""
    if isinstance(store, str | os.PathLike):
        return FileStore(store)
    if not isinstance(store, Store):
        raise OptionError(f"store must be a folder, a URL or a Store, got {store!r:.60}")
    return store


def _start_decoders(source: ImageSource) -> None:
    """Start the process from which decoders are forked, if decoders are useful; this takes a while."""
    with contextlib.suppress(Exception):  # raised again when images are decoded
        if source.should_use_decoders:
            start_decoder_server(type(source.images))


def _needed_bytes(planned: Plan) -> float:
    """Estimate the size of the missing predictions in a store."""
    logit_bytes = _LOGIT_BYTES if planned.options.keep_logits else 0
    return sum(
        cell.images * (_ROW_BYTES + logit_bytes * (cell.model.spec.classes or 0)) for cell in planned.cells
    )


_ROW_BYTES = 40
"""Bytes of a stored prediction; measured are 40 to 58."""
_LOGIT_BYTES = 1.9
"""Bytes of a stored logit, as compressed float16."""


def _make_plan(
    models: Sequence[LazyModel],
    sources: Sources,
    store: Store,
    labels: Labels,
    options: RunOptions,
    suite: Suite | None,
    *,
    keep_models: bool,
) -> Plan:
    """Return the plan with the gaps of each cell.

    Models are not run, except on one image if the number of outputs is neither in the spec nor in the store.
    """
    names = [model.spec.name for model in models]
    if twice := {name for name in names if names.count(name) > 1}:
        raise OptionError(
            f"models must have different names, got {sorted(twice)[0]!r} twice; pass name= to as_model, or "
            "--set name= on the command line"
        )
    _count_outputs(models, sources[0][0], store, keep_models=keep_models)
    spaces = [
        {id(model): space_of(model.spec, source, labels, options.convention) for model in models}
        for source, _ in sources
    ]
    every = [condition for _, conditions in sources for condition in conditions]
    _check_streams(models, sources)
    _check_shifts(models, every, keep_models=keep_models)
    identities = [_model_facts(model, options) for model in models]
    _check_distinct(identities)
    sides = [
        (_Lazy(lambda source=source: source.facts), _condition_facts(conditions, source))  # type: ignore[misc]
        for source, conditions in sources
    ]
    cells = []
    for model, identity in zip(models, identities, strict=True):
        for index, ((source, conditions), (data, facts)) in enumerate(zip(sources, sides, strict=True)):
            space = spaces[index][id(model)]
            mine = _with_labels(data, source.scoring_facts(space))
            whole = ((0, source.count),)
            cells += [
                PlannedCell(model, condition, (identity, mine, fact), whole, space, source, index)
                for condition, fact in zip(conditions, facts, strict=True)
            ]
    listing: Listing = {}
    if isinstance(store, FileStore) and (listing := store.listing_of(names)):
        cells = list(_with_gaps(cells, store, listing))
    if not listing or any(one.gaps for one in cells):  # a renamed model has predictions in other folders
        listing = store.listing()
        if listing:  # in an empty store, the first batch does not wait for the digest of the data
            cells = list(_with_gaps(cells, store, listing))
    return Plan(tuple(source for source, _ in sources), tuple(cells), listing, store, suite, options)


def _count_outputs(
    models: Sequence[LazyModel], source: ImageSource, store: Store, *, keep_models: bool
) -> None:
    """Set the number of outputs of every model; from the store, in which case a service need not run."""
    for model in models:
        if model.spec.classes is None:
            known = _recorded_outputs(model.spec, store)
            if known is None:
                _, image = source.first_image
                model.count_outputs(image[: len(image) // source.frames])
            else:
                model.set_outputs(known)
            if not keep_models:
                model.unload()


def _recorded_outputs(spec: ModelSpec, store: Store) -> int | None:
    """Return the number of outputs of the same model in an earlier run of the store."""
    if not spec.reusable:
        return None
    with contextlib.suppress(StoreError):  # reported when the record is needed
        for record in store.runs():
            names = {(one.get("name"), one.get("digest")) for one in record.get("models", ())}
            same = (spec.name, spec.digest) in names
            for notes in record.get("shown", [record]) if same else ():
                if (outputs := notes.get("outputs")) is not None:
                    return int(outputs)
    return None


def _with_gaps(cells: Sequence[PlannedCell], store: Store, listing: Listing) -> Iterator[PlannedCell]:
    """Yield the cells, those with gaps with the gaps of the store; files are read concurrently."""

    def gaps(one: PlannedCell) -> tuple[Range, ...]:
        found = tuple(store.missing(one.cell, one.source.count, listing))
        if not found or not one.model.stateful:
            return found
        start = found[0][0]  # all that follows depends on what is missing
        return ((start if start and read_state(store, one.cell, start) else 0, one.source.count),)

    todo = [one for one in cells if one.gaps]
    with ThreadPoolExecutor(_READERS, thread_name_prefix="beaufort planning") as pool:
        found = dict(zip(map(id, todo), pool.map(gaps, todo), strict=True))
    for cell in cells:
        yield replace(cell, gaps=found[id(cell)]) if id(cell) in found else cell


def _check_streams(models: Sequence[LazyModel], sources: Sources) -> None:
    """Check that models that adapt are evaluated on streams only."""
    for model in models:
        others = [one for source, some in sources if source.schedule is None for one in some]
        if others and model.stateful:
            raise OptionError(
                f"{model.spec.name} adapts while it is tested, so its predictions under {others[0]} depend "
                "on the preceding images; use a suite of streams, such as cifar10-c-continual, or "
                "stream@cifar/continual,batch=200,seeds=5"
            )


def _check_shifts(models: Sequence[LazyModel], conditions: Sequence[Condition], *, keep_models: bool) -> None:
    """Check that the shifts support every model, before any is run."""
    shifts = [condition.shift for condition in conditions]
    for model in models:
        for shift in shifts:
            if isinstance(shift, Demanding):
                shift.check(model.load())
        if not keep_models:
            model.unload()


def _with_labels(data: _Lazy[Facts], labels: Facts) -> _Lazy[Facts]:
    """Return the facts of the data with those of the labels, if there are any."""
    return _Lazy(lambda: {**data(), "labels": labels}) if labels else data


def space_of(
    spec: ModelSpec, source: ImageSource, labels: Labels = None, convention: str | None = None
) -> LabelSpace:
    """Return the label space in which a model is scored on a dataset."""
    dataset, suite = source.dataset, source.suite
    used = np.unique(dataset.labels)
    if suite is not None:
        labels = suite.grouping if labels is None else labels
        convention = suite.convention if convention is None else convention
    return find_label_space(
        DatasetLabels(dataset.name, dataset.classes, used, dataset.by_name),
        ModelOutputs(
            spec.name,
            spec.classes,
            spec.class_names,
            spec.label_space,
            suite.label_space if suite else None,
            spec.outcomes,
        ),
        labels=labels,
        convention=convention,
    )


def _model_facts(model: LazyModel, options: RunOptions) -> Facts:
    spec = model.spec
    facts: Facts = {"name": spec.name, "digest": spec.digest, "preprocessing": spec.preprocessing.to_dict()}
    if options.allow_batch_dependence:
        facts["batch_size"] = options.batch_size
    if not spec.reusable:  # it may differ from the model of an earlier run
        facts["run"] = uuid.uuid4().hex
    return facts


def _check_distinct(identities: Sequence[Facts]) -> None:
    """Raise an error if two models have the same identity in the store."""
    for place, about in enumerate(identities):
        for other in identities[:place]:
            if {**about, "name": ""} == {**other, "name": ""}:
                raise OptionError(
                    f"the models {other['name']} and {about['name']} have the same weights and preprocessing,"
                    " or the same version; pass different versions"
                )


def _condition_facts(conditions: Sequence[Condition], source: ImageSource) -> list[_Lazy[Facts]]:
    if source.stored:
        digest = _Lazy(source.dataset.images_digest)
        return [
            _Lazy(lambda condition=condition: _stored_facts(condition, source, digest()))  # type: ignore[misc]
            for condition in conditions
        ]
    side, channels = None, 3
    if source.count and any(not condition.clean for condition in conditions):
        _, first = source.first_image
        channels = first.shape[-1]
        side = None if source.scale in SCALES else min(first.shape[:2])
    about: Facts = {"scale": source.scale, "seed": source.seed, "side": side, "channels": channels}
    prepared: Facts = {"prepare": source.steps}
    if source.base is not None:  # the order of a stream depends on the number of images
        prepared["images"] = source.base.count
    found = [{**condition.facts(**about), **prepared} for condition in conditions]
    return [_Lazy(lambda facts=facts: facts) for facts in found]  # type: ignore[misc]


def _stored_facts(condition: Condition, source: ImageSource, digest: str) -> Facts:
    """Return the facts of stored images: their digest, not how they were made."""
    made = {"corruption": condition.corruption, "stored": digest}
    strength: Facts = {} if condition.clean else {"severity": condition.severity}
    level = {} if condition.level is None else {"level": condition.level}
    return {**made, **strength, **level, "prepare": source.steps}

"""Models × conditions × images, on one machine.

Images go by in blocks. A block is decoded once; under each condition it is corrupted batch by batch in
threads or on the models' device, ahead of the models, and every model that has no answers yet sees the same
batch. The answers of a block are kept when its last batch is done: what a kill costs is at most one block of
one condition in each process.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.data import Problem, start_source
from beaufort.data.labels import LabelSets, read_label_sets
from beaufort.evaluation._memory import memory_store
from beaufort.evaluation._notebook import evaluation_frame, evaluation_html
from beaufort.evaluation._results import common_outputs, plan_results, stored_in
from beaufort.evaluation.arguments import (
    Conditions,
    Data,
    DataSource,
    Models,
    find_count,
    find_models,
    find_seed,
    find_suite,
)
from beaufort.evaluation.engines import Local, NodeSpeed, Processes
from beaufort.evaluation.groups import Choice, find_groups
from beaufort.evaluation.keeper import Counts, Keeper
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.notes import notes_on
from beaufort.evaluation.planning import Labels, Plan, Setup, Work, make_plan
from beaufort.evaluation.precision import Stop, run_until
from beaufort.evaluation.preflight import Needs
from beaufort.evaluation.provenance import provenance
from beaufort.evaluation.ray_engine import Ray, RayOptions, import_ray
from beaufort.evaluation.schedule import Progress, Run, inside
from beaufort.evaluation.work import Failed, Job
from beaufort.results import Results, Scores, score
from beaufort.results.baseline import check_baseline
from beaufort.store import FileStore, Store
from beaufort.suites import Suite

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Result:
    """One model under one condition."""

    model: str
    condition: str
    images: int
    correct: int
    unread: int
    unlabeled: int
    """Images that were read and have no label, where labels are sets; they are left out."""
    reused: bool
    """Whether every answer was in the store before the run."""
    fingerprint: str
    labels: str
    """What counts as which class, and what competes, in words."""

    @property
    def accuracy(self) -> float:
        """Share of the images that were read and have a label whose most probable class is right."""
        return self.correct / self.images if self.images else float("nan")


@dataclass(frozen=True)
class Evaluation:
    """The result of a run."""

    results: tuple[Result, ...]
    problems: tuple[Problem, ...]
    """Files of the data, and images, that could not be read, in this run or in one whose answers are
    reused."""
    stop: Stop | None = None
    """After how many images a run with a precision stopped, and why."""
    notes: tuple[str, ...] = ()
    """What else a reader should know: corruptions that the device cannot make, say."""
    store: Store | None = field(default=None, repr=False, compare=False)
    """Where the answers are; in memory if no store was named."""
    answers: tuple[Results, ...] = field(default=(), repr=False, compare=False)
    """The stored answers of each data set of the suite, ready to be scored; empty without a suite."""
    failures: tuple[str, ...] = ()
    """What could not be done, because it ended every worker that tried; those results are left out."""
    nodes: Mapping[str, NodeSpeed] = field(default_factory=dict, repr=False, compare=False)
    """What each machine of a cluster did, by name."""

    def scores(self, **options: Any) -> Scores:
        """The suite's numbers with their intervals; the options are those of `beaufort.results.score`."""
        found = self.part_scores(**options)
        if len(found) > 1:
            raise OptionError(f"scores() is for a suite of one data set, got {len(found)}; use part_scores()")
        return found[0]

    def part_scores(self, **options: Any) -> tuple[Scores, ...]:
        """As `scores`, for each data set of a suite of several."""
        if self.failures and not self.answers:
            raise OptionError(f"scores need the answers of at least one model, got {self.failures[0]}")
        if not self.answers or self.store is None:
            raise OptionError("scores need a suite: it says which numbers are wanted; evaluate with one")
        return tuple(score(stored_in(one, self.store), **options) for one in self.answers)

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for each model and condition; `scores().to_pandas()` has every number."""
        return evaluation_frame(self)

    def _repr_html_(self) -> str:
        return evaluation_html(self)


def plan(
    models: Models,
    suite: Conditions,
    data: Data,
    store: str | Path | Store,
    *,
    clean: DataSource | None = None,
    limit: int | None = None,
    first: int | None = None,
    prepare: str | None = None,
    labels: Labels = None,
    convention: str | None = None,
    truths: str | Path | LabelSets | None = None,
    seed: int = 0,
    keep_logits: bool = False,
    strict: bool = False,
    shuffled: bool = False,
    keep_models: bool = False,
) -> Plan:
    """What `evaluate` would do with the same arguments; `shuffled` is what it does with a precision.

    What a run needs is looked for, and fetched from the catalog; a `NotReadyError` tells of all that is
    missing. Models given as text are loaded for their facts, one after the other. With `keep_models` all of
    them stay in memory, ready for a run in this process; otherwise there is never more than one.
    """
    found = find_suite(suite, prepare)
    named = found if isinstance(found, Suite) else None
    if labels is not None and named is not None and named.parts:
        raise OptionError(
            f"labels must be said in the suite, part by part: {named} has parts, got labels beside it"
        )
    lazy = find_models(models)
    runs_here, keep_models = keep_models, keep_models or len(lazy) == 1  # which need not be loaded again
    sets = read_label_sets(truths) if isinstance(truths, str | os.PathLike) else truths
    limit, first = find_count("limit", limit), find_count("first", first)
    choice = Choice(limit, first, find_seed(seed), strict, shuffled, sets)
    needs = Needs()
    groups = needs.get("the data", lambda: find_groups(found, data, clean, choice))
    if runs_here and groups and any(model.device.startswith("cuda") for model in lazy):
        _expect_decoders(groups[0][0])  # beside the models
    for model in lazy:  # after all that could be a slip of the pen: some take minutes to load
        needs.get(f"the model {model.text}", lambda model=model: model.spec)  # type: ignore[misc]
        if not keep_models:
            model.let_go()
    if groups is None or needs.missing:
        needs.files(found.conditions() if isinstance(found, Suite) else found)
        needs.check()
    assert groups is not None
    kept = _store(store)
    if named is not None:
        _check_baselines(named, [model.spec.name for model in lazy], kept)
    planned = make_plan(lazy, groups, kept, labels, convention, named, keep_models=keep_models)
    needs.files(work.condition for work in planned.works if work.gaps and not work.setup.stored)
    needs.room(planned, kept, keep_logits=keep_logits)
    needs.check()
    return planned


def _expect_decoders(setup: Setup) -> None:
    """Start what decoders are forked from, if they will be worth it: it takes a while until it is there."""
    with contextlib.suppress(Exception):  # what fails is met again when pictures are decoded
        if setup.worth_decoders:
            start_source(type(setup.pictures))


def _check_baselines(suite: Suite, models: Sequence[str], store: Store) -> None:
    """Refuse a baseline that nobody knows before anything is shown; the store is looked into if need be."""
    way_out = "evaluate a model of your own before, or in the same run"
    for part in suite.parts or (suite,):
        try:
            check_baseline(part, models, way_out)
        except BeaufortError:
            stored = [one["name"] for record in store.runs() for one in record.get("models", ())]
            check_baseline(part, [*models, *stored], way_out)


def _store(store: str | Path | Store) -> Store:
    if isinstance(store, str | os.PathLike):
        return FileStore(store)
    if not isinstance(store, Store):
        raise OptionError(f"store must be a folder, a URL or a Store, got {store!r:.60}")
    return store


def evaluate(
    models: Models,
    suite: Conditions,
    data: Data,
    store: str | Path | Store | None = None,
    *,
    clean: DataSource | None = None,
    limit: int | None = None,
    first: int | None = None,
    prepare: str | None = None,
    labels: Labels = None,
    convention: str | None = None,
    truths: str | Path | LabelSets | None = None,
    jobs: int | None = None,
    processes: int | None = None,
    ray: RayOptions | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    keep_logits: bool = False,
    strict: bool = False,
    precision: float | None = None,
    baseline: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Show every image under every condition to every model, and keep the answers; skip what is kept.

    Args:
        models: one model or a list of them: texts for `load_model`, `Model`s, torch modules, or functions
            from uint8 images `(n, h, w, c)` to logits.
        suite: a suite, its name or file; a list of conditions; or a list of names of corruptions, each of
            which then comes at all five severities, beside the clean images.
        data: a text for `load_dataset`, a `Dataset`, `(images, labels)` as arrays or tensors, or a torch
            `Dataset` or `DataLoader`, whose items are shown in their own order; images are uint8, or floats
            from 0 to 1. For a suite of several, one for each of its data sets by name. A published C-set as
            a whole, `cifar10-c:FOLDER`, is shown as it is stored.
        store: a folder or URL that keeps the answers, or any `Store`; in memory, for as long as the
            result is kept, if None.
        clean: the clean images that stored pictures were made from, if a suite's clean condition is wanted.
        limit: only so many images, spread over the classes: they take turns, and which of a class's images
            come is seeded with `seed`.
        first: only the first so many images of the data set.
        prepare: `none` leaves pictures as they are, where the suite would bring them to size.
        labels: `identity` where labels are numbers of outputs; outputs by class, or a JSON file of them. If
            None, names decide where both sides have some; what cannot be decided is refused.
        convention: `restricted` (only outputs that belong to the data set's classes compete) or `all`; the
            first if None. Without meaning where every output is a class.
        truths: sets of labels of which any is right, or a file of them, as ReaL's `real.json`.
        jobs: threads that decode and corrupt; one less than there are processors, at least 1, if None.
        processes: worker processes that share the work, each with one thread for every library; models are
            then given as text, or as objects that can be pickled. None does it in this process.
        ray: workers of a Ray cluster share the work, and write the answers themselves; models and data are
            then looked for on every node before anything starts.
        batch_size: images that a model sees at once; by their size if None.
        seed: of everything that is random.
        keep_logits: keep all logits, not only the five best classes.
        strict: stop at the first image that cannot be read, instead of telling of it at the end.
        precision: stop when every headline interval is narrower than ± so many points (1.0: ± 1 %), as
            `--precision`; the images then come in a random order, seeded with `seed`.
        baseline: what mCE divides by when a precision is asked for; the suite's own if None.
        progress: called after every batch.
    """
    if processes is not None and ray is not None:
        raise OptionError("only one of processes and ray can be given, got both")
    if jobs is not None and ray is not None:
        raise OptionError("jobs must not be given with ray, whose cpus say how many threads a worker has")
    if ray is not None and store is None:
        raise OptionError("with ray, store must be a place that every node reaches, got none")
    if ray is not None:
        import_ray()  # an error, if it is not installed, before anything else
    jobs, processes = find_count("jobs", jobs), find_count("processes", processes)
    batch_size = find_count("batch_size", batch_size)
    kept = memory_store() if store is None else _store(store)
    planned = plan(
        models,
        suite,
        data,
        kept,
        clean=clean,
        limit=limit,
        first=first,
        prepare=prepare,
        labels=labels,
        convention=convention,
        truths=truths,
        seed=seed,
        keep_logits=keep_logits,
        strict=strict,
        shuffled=precision is not None,
        keep_models=processes is None and ray is None,
    )
    if precision is not None and len(planned.setups) > 1:
        raise OptionError(
            "precision must be asked for on one data set that is made ready in one way, got "
            f"{len(planned.setups)}; leave it out"
        )
    origin = provenance()
    todo = list(dict.fromkeys(work.model for work in planned.works if work.gaps))
    spaces = {(work.place, work.model): work.space for work in planned.works}
    job = Job(
        planned.setups,
        tuple(todo),
        tuple(tuple(spaces[place, model] for model in todo) for place in range(len(planned.setups))),
        tuple(dict.fromkeys(work.condition for work in planned.works if work.gaps)),
        jobs or max(1, (os.cpu_count() or 2) - 1),
        batch_size,
        keep_logits,
    )
    for model in {work.model for work in planned.works}:
        if processes is not None or ray is not None or model not in todo:
            model.let_go()
    record = None if planned.suite is None else partial(_record, planned, planned.suite, origin)
    if ray is not None and record is not None and todo:
        kept.write_run(*record())  # workers look for it, and write answers only after it
    engine: Local | Processes | Ray
    if not todo or (processes is None and ray is None):
        engine = Local(job)
    elif ray is not None:
        engine = Ray(job, ray, kept, planned.works, origin)
    else:
        engine = Processes(job, processes or 1)
    gather = engine.gather if isinstance(engine, Ray) else None
    with engine, Keeper(kept, planned.works, planned.listing, gather) as keeper:
        run = Run(planned, engine, keeper, todo, origin, processes or 1, progress, record)
        stop = None
        if precision is None:
            run.show()
        else:
            stop = run_until(planned, kept, precision, baseline, run.show)
        if record is not None:
            keeper.record(record, needed=planned.images > 0)  # also if there was nothing to do
        failed = {number for failure in run.failures for number in failure.works}
        counts = keeper.counts(None if stop is None else stop.images, failed)
        nodes = dict(engine.nodes)
    both = zip(planned.works, counts, strict=True)
    results = (_result(work, each, stop) for work, each in both if each is not None)
    problems = (*planned.problems, *run.sorted_problems(keeper.unread))
    failures = tuple(_failure(planned, failure) for failure in run.failures)
    notes = (*notes_on(planned), *run.notes, *keeper.notes)
    lacking = {planned.works[number].model for number in failed}
    answers = tuple(_answers(planned, None if stop is None else stop.images, origin, lacking))
    return Evaluation(tuple(results), problems, stop, notes, kept, answers, failures, nodes)


def _failure(planned: Plan, failure: Failed) -> str:
    names = sorted({planned.works[number].model.spec.name for number in failure.works})
    condition = planned.works[failure.works[0]].condition
    first, behind = failure.span
    return (
        f"{', '.join(names)} under {condition}, images {first} to {behind - 1}: every worker that tried "
        f"ended ({failure.reason})"
    )


def _answers(
    planned: Plan, shown: int | None, origin: dict[str, Any], lacking: Collection[LazyModel]
) -> Iterator[Results]:
    """For each data set of the suite, if there is one; without models that lack some answers."""
    for part in _by_part(planned):
        works = [work for work in part if work.model not in lacking]
        if not works:
            continue
        yield plan_results(works, works[0].setup.count if shown is None else shown, (origin,))


def _by_part(planned: Plan) -> list[Sequence[Work]]:
    if planned.suite is None:
        return []
    if not planned.suite.parts:
        return [planned.works]
    return [[work for work in planned.works if work.setup.suite is part] for part in planned.suite.parts]


def _record(planned: Plan, suite: Suite, origin: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a run is asked for, and what else a reader of its results wants to know."""
    models = {work.cell.model["name"]: work.cell.model for work in planned.works}
    facts: dict[str, Any] = {"suite": suite.as_dict()}
    asked = {"seed": planned.setup.seed, "models": list(models.values())}
    if not suite.parts:
        some, notes = _record_of(planned.works)
        return {**facts, **some, **asked}, {**notes, **origin}
    each = list(map(_record_of, _by_part(planned)))
    return {**facts, "parts": [some for some, _ in each], **asked}, {
        "shown": [notes for _, notes in each],
        **origin,
    }


def _record_of(works: Sequence[Work]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same for works on the same images."""
    setup = works[0].setup
    facts: dict[str, Any] = {"data": works[0].cell.data}
    scored = {key: value for work in works for key, value in work.cell.data.get("labels", {}).items()}
    if scored:
        facts["data"] = {key: value for key, value in facts["data"].items() if key != "labels"}
        facts["labels"] = {key: scored[key] for key in ("convention", "truths") if key in scored}
    if setup.stored:
        facts["stored"] = {work.condition.done: work.cell.condition["stored"] for work in works}
    notes: dict[str, Any] = {"images": setup.count, "classes": list(setup.dataset.classes)}
    if (outputs := common_outputs(works)) is not None:
        notes["outputs"] = outputs
    return facts, notes


def _result(work: Work, counts: Counts, stop: Stop | None) -> Result:
    name, condition = work.model.spec.name, str(work.condition)
    reused = not inside(work.gaps, 0, math.inf if stop is None else stop.images)
    return Result(name, condition, *counts, reused, work.cell.fingerprint, str(work.space))

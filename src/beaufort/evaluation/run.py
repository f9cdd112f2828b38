"""Models × conditions × images, on one machine.

Images go by in blocks. A block is decoded once; under each condition it is corrupted batch by batch in
threads or on the models' device, ahead of the models, and every model that has no answers yet sees the same
batch. The answers of a block are kept when its last batch is done: what a kill costs is at most one block of
one condition in each process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from beaufort.conditions import Condition
from beaufort.datasets import Dataset, Problem, open_dataset
from beaufort.errors import OptionError
from beaufort.evaluation.engines import Engine, Local, Processes
from beaufort.evaluation.keeper import Counts, Keeper
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.planning import Labels, Plan, Setup, Work, make_plan
from beaufort.evaluation.precision import Stop, run_until
from beaufort.evaluation.provenance import provenance
from beaufort.evaluation.ray_engine import Ray, RayOptions
from beaufort.evaluation.schedule import Progress, Run, inside
from beaufort.evaluation.work import Failed, Job
from beaufort.labels import Truths, read_truths
from beaufort.models import Model
from beaufort.store import FileStore, Store
from beaufort.suites import Step, Suite, get_suite

__all__ = ["Evaluation", "Result", "evaluate", "plan"]


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
    """Whether the store had it all."""
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
    """Images that could not be read."""
    stop: Stop | None = None
    """Where a run with a precision ended."""
    failures: tuple[str, ...] = ()
    """What could not be done, because it ended every worker that tried; those results are left out."""
    notes: tuple[str, ...] = ()
    """What else a reader should know: corruptions that the device cannot make, say."""


def plan(
    models: Sequence[str | Model | LazyModel],
    suite: str | Suite | Sequence[Condition],
    data: str | Path | Dataset,
    store: str | Path | Store,
    *,
    limit: int | None = None,
    first: int | None = None,
    labels: Labels = None,
    convention: str | None = None,
    truths: str | Path | Truths | None = None,
    seed: int = 0,
    strict: bool = False,
) -> Plan:
    """What `evaluate` would do with the same arguments."""
    if not models:
        raise OptionError("models must not be empty")
    if isinstance(suite, str):
        suite = get_suite(suite)
    dataset = data if isinstance(data, Dataset) else open_dataset(str(data), strict=strict)
    conditions, prepare, scale = _conditions(suite, dataset)
    dataset, count = _limited(dataset, limit, first, seed)
    named = suite if isinstance(suite, Suite) else None
    sets = read_truths(truths) if isinstance(truths, str | os.PathLike) else truths
    setup = Setup(dataset, count, prepare, scale, seed, named, sets)
    lazy = [LazyModel.of(model) for model in models]
    return make_plan(lazy, conditions, setup, _store(store), labels, convention)


def _limited(dataset: Dataset, limit: int | None, first: int | None, seed: int) -> tuple[Dataset, int]:
    """The data set in the order in which its images are shown, and how many of them are."""
    if limit is not None and first is not None:
        raise OptionError(f"limit and first must not both be given, got {limit} and {first}")
    wanted = first if limit is None else limit
    count = len(dataset) if wanted is None else min(wanted, len(dataset))
    if count < 1:
        raise OptionError(
            f"expected at least one image, got {len(dataset)} in {dataset.name} with a limit of {wanted}"
        )
    if limit is not None and dataset.order is None and count < len(dataset):
        dataset = dataset.spread_out(seed)
    return dataset, count


def _store(store: str | Path | Store) -> Store:
    return FileStore(store) if isinstance(store, str | os.PathLike) else store


def _conditions(
    suite: Suite | Sequence[Condition], dataset: Dataset
) -> tuple[list[Condition], tuple[Step, ...], str]:
    if isinstance(suite, Suite):
        return suite.conditions(dataset.name), suite.prepare, suite.scale
    return list(suite), (), "auto"


def evaluate(
    models: Sequence[str | Model | LazyModel],
    suite: str | Suite | Sequence[Condition],
    data: str | Path | Dataset,
    store: str | Path | Store,
    *,
    limit: int | None = None,
    first: int | None = None,
    labels: Labels = None,
    convention: str | None = None,
    truths: str | Path | Truths | None = None,
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
        models: models, or texts for `load_model`.
        suite: a suite, its name or file, or a list of conditions.
        data: a data set, or a text for `open_dataset`.
        store: a folder or URL that keeps the answers, or any `Store`.
        limit: only so many images, spread over the classes: they take turns, and which of a class's images
            come is seeded with `seed`.
        first: only the first so many images of the data set.
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
        precision: stop when every headline interval is narrower than ± this share (0.01: one point); the
            images then come in a random order, seeded with `seed`.
        baseline: what mCE divides by when a precision is asked for; the suite's own if None.
        progress: called after every batch.
    """
    if processes is not None and ray is not None:
        raise OptionError("only one of processes and ray can be given, got both")
    if processes is not None and processes < 1:
        raise OptionError(f"processes must be a positive integer, got {processes!r}")
    kept = _store(store)
    if precision is not None:
        data = data if isinstance(data, Dataset) else open_dataset(str(data), strict=strict)
        data = data if data.order is not None else data.shuffled(seed)
    planned = plan(
        models,
        suite,
        data,
        kept,
        limit=limit,
        first=first,
        labels=labels,
        convention=convention,
        truths=truths,
        seed=seed,
        strict=strict,
    )
    origin = provenance()
    spaces = {work.model: work.space for work in planned.works if work.gaps}
    todo = list(spaces)
    job = Job(
        planned.setup,
        tuple(todo),
        tuple(spaces.values()),
        tuple(dict.fromkeys(work.condition for work in planned.works if work.gaps)),
        jobs or max(1, (os.cpu_count() or 2) - 1),
        batch_size,
        keep_logits,
    )
    for model in {work.model for work in planned.works}:
        if processes is not None or ray is not None or model not in todo:
            model.let_go()
    record = None if planned.setup.suite is None else partial(_record, planned, planned.setup.suite, origin)
    if ray is not None and record is not None and todo:
        kept.write_run(*record())  # workers look for it, and write answers only after it
    engine: Engine
    if not todo or (processes is None and ray is None):
        engine = Local(job)
    elif ray is not None:
        cells = {number: work.cell for number, work in enumerate(planned.works) if work.gaps}
        engine = Ray(job, ray, kept, cells, origin)
    else:
        engine = Processes(job, processes or 1)
    with engine, Keeper(kept, planned.works, planned.listing) as keeper:
        run = Run(planned, engine, keeper, todo, origin, processes or 1, progress, record)
        stop = None
        if precision is None:
            run.show(0, planned.setup.count)
        else:
            stop = run_until(planned, kept, precision, baseline, run.show)
        if record is not None:
            keeper.record(record, needed=planned.images > 0)  # also if there was nothing to do
        failed = {number for failure in run.failures for number in failure.works}
        counts = keeper.counts(planned.setup.count if stop is None else stop.images, failed)
    both = zip(planned.works, counts, strict=True)
    results = (_result(work, each, stop) for work, each in both if each is not None)
    failures = tuple(_failure(planned, failure) for failure in run.failures)
    notes = (*_chosen(planned.setup), *run.notes, *keeper.notes)
    return Evaluation(tuple(results), run.sorted_problems(), stop, failures, notes)


def _failure(planned: Plan, failure: Failed) -> str:
    names = sorted({planned.works[number].model.spec.name for number in failure.works})
    condition = planned.works[failure.works[0]].condition
    first, behind = failure.span
    return (
        f"{', '.join(names)} under {condition}, images {first} to {behind - 1}: every worker that tried "
        f"ended ({failure.reason})"
    )


def _chosen(setup: Setup) -> Iterator[str]:
    """Which images were taken, if not all."""
    if setup.dataset.spread:
        yield (
            f"{setup.count:,} of {len(setup.dataset):,} images, taken from the classes in turns, with the "
            f"seed {setup.dataset.order}; `first` (--first) takes the first ones instead"
        )


def _record(planned: Plan, suite: Suite, origin: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a run is asked for, and what else a reader of its results wants to know."""
    setup = planned.setup
    models = {work.cell.model["name"]: work.cell.model for work in planned.works}
    facts: dict[str, Any] = {
        "suite": suite.as_dict(),
        "data": planned.works[0].cell.data,
        "seed": setup.seed,
        "models": list(models.values()),
    }
    scored = {key: value for work in planned.works for key, value in work.cell.data.get("labels", {}).items()}
    if scored:
        facts["data"] = {key: value for key, value in facts["data"].items() if key != "labels"}
        facts["labels"] = {key: scored[key] for key in ("convention", "truths") if key in scored}
    notes: dict[str, Any] = {"images": setup.count, "classes": list(setup.dataset.classes)}
    outputs = {work.model.spec.classes for work in planned.works}
    if len(outputs) == 1 and None not in outputs:  # models that choose from different classes say nothing
        notes["outputs"] = outputs.pop()
    return facts, {**notes, **origin}


def _result(work: Work, counts: Counts, stop: Stop | None) -> Result:
    name, condition = work.model.spec.name, str(work.condition)
    reused = not inside(work.gaps, 0, math.inf if stop is None else stop.images)
    return Result(name, condition, *counts, reused, work.cell.fingerprint, str(work.space))

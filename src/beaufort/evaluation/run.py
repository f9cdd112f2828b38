"""Models × conditions × images, on one machine.

Images go by in blocks. A block is decoded once; under each condition it is corrupted batch by batch in
threads or on the models' device, ahead of the models, and every model that has no answers yet sees the same
batch. The answers of a block are kept when its last batch is done: what a kill costs is at most one block of
one condition in each process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from beaufort.conditions import Condition
from beaufort.datasets import Dataset, Problem
from beaufort.errors import OptionError
from beaufort.evaluation.answers import answers_of
from beaufort.evaluation.arguments import Conditions, Data, Models, find_dataset, find_models, find_suite
from beaufort.evaluation.engines import Engine, Local, Processes
from beaufort.evaluation.keeper import Counts, Keeper
from beaufort.evaluation.notes import notes_on
from beaufort.evaluation.planning import Labels, Plan, Setup, Work, make_plan
from beaufort.evaluation.precision import Stop, run_until
from beaufort.evaluation.preflight import Needs
from beaufort.evaluation.provenance import provenance
from beaufort.evaluation.schedule import Progress, Run, inside
from beaufort.evaluation.work import Job
from beaufort.labels import Truths, read_truths
from beaufort.results import Results
from beaufort.store import FileStore, Store
from beaufort.suites import Suite

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
    """Images that could not be read, in this run or in one whose answers are reused."""
    stop: Stop | None = None
    """Where a run with a precision ended."""
    notes: tuple[str, ...] = ()
    """What else a reader should know: corruptions that the device cannot make, say."""
    answers: Results | None = field(default=None, repr=False, compare=False)
    """What `beaufort.results.score` makes numbers of; None if the conditions are of no suite."""


def plan(
    models: Models,
    suite: Conditions,
    data: Data,
    store: str | Path | Store,
    *,
    limit: int | None = None,
    first: int | None = None,
    prepare: str | None = None,
    labels: Labels = None,
    convention: str | None = None,
    truths: str | Path | Truths | None = None,
    seed: int = 0,
    keep_logits: bool = False,
    strict: bool = False,
    precision: float | None = None,
) -> Plan:
    """What `evaluate` would do with the same arguments; what that needs is looked for, and fetched."""
    found = _prepared(find_suite(suite), prepare)
    lazy = find_models(models)
    needs = Needs()
    dataset = needs.get("the data", lambda: find_dataset(data, strict=strict))
    setup = (
        None
        if dataset is None
        else _setup(found, dataset, limit, first, truths, seed, shuffled=precision is not None)
    )
    for model in lazy:  # after all that could be a slip of the pen: some take minutes to load
        needs.get(f"the model {model.text}", lambda model=model: model.spec)  # type: ignore[misc]
    if setup is None or needs.missing:
        needs.files(found.corruptions if isinstance(found, Suite) else [one.corruption for one in found])
        needs.check()
    assert setup is not None
    conditions = found.conditions(setup.dataset.name) if isinstance(found, Suite) else found
    kept = _store(store)
    planned = make_plan(lazy, conditions, setup, kept, labels, convention)
    needs.files(work.condition.corruption for work in planned.works if work.gaps)
    needs.room(planned, kept, keep_logits=keep_logits)
    needs.check()
    return planned


def _prepared(suite: Suite | list[Condition], prepare: str | None) -> Suite | list[Condition]:
    """The suite, or the same for pictures that are left as they are."""
    if prepare not in (None, "none"):
        raise OptionError(f"prepare must be 'none', or not be given, got {prepare!r:.60}")
    return suite.unprepared() if prepare == "none" and isinstance(suite, Suite) else suite


def _setup(
    suite: Suite | list[Condition],
    dataset: Dataset,
    limit: int | None,
    first: int | None,
    truths: str | Path | Truths | None,
    seed: int,
    *,
    shuffled: bool,
) -> Setup:
    if shuffled and dataset.order is None:
        dataset = dataset.shuffled(seed)
    dataset, count = _limited(dataset, limit, first, seed)
    sets = read_truths(truths) if isinstance(truths, str | os.PathLike) else truths
    if isinstance(suite, Suite):
        return Setup(dataset, count, suite.prepare, suite.scale, seed, suite, sets)
    return Setup(dataset, count, (), "auto", seed, None, sets)


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


def evaluate(
    models: Models,
    suite: Conditions,
    data: Data,
    store: str | Path | Store,
    *,
    limit: int | None = None,
    first: int | None = None,
    prepare: str | None = None,
    labels: Labels = None,
    convention: str | None = None,
    truths: str | Path | Truths | None = None,
    jobs: int | None = None,
    processes: int | None = None,
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
        data: a text for `open_dataset`, a `Dataset`, `(images, labels)` as arrays or tensors, or a torch
            `Dataset` or `DataLoader`, whose items are shown in their own order. Images are uint8, or floats
            from 0 to 1.
        store: a folder or URL that keeps the answers, or any `Store`.
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
        batch_size: images that a model sees at once; by their size if None.
        seed: of everything that is random.
        keep_logits: keep all logits, not only the five best classes.
        strict: stop at the first image that cannot be read, instead of telling of it at the end.
        precision: stop when every headline interval is narrower than ± this share (0.01: one point); the
            images then come in a random order, seeded with `seed`.
        baseline: what mCE divides by when a precision is asked for; the suite's own if None.
        progress: called after every batch.
    """
    if processes is not None and processes < 1:
        raise OptionError(f"processes must be a positive integer, got {processes!r}")
    kept = _store(store)
    planned = plan(
        models,
        suite,
        data,
        kept,
        limit=limit,
        first=first,
        prepare=prepare,
        labels=labels,
        convention=convention,
        truths=truths,
        seed=seed,
        keep_logits=keep_logits,
        strict=strict,
        precision=precision,
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
        if processes is not None or model not in todo:
            model.let_go()
    engine: Engine = Local(job) if processes is None or not todo else Processes(job, processes)
    with engine, Keeper(kept, planned.works, planned.listing) as keeper:
        record = (
            None if planned.setup.suite is None else partial(_record, planned, planned.setup.suite, origin)
        )
        run = Run(planned, engine, keeper, todo, origin, processes or 1, progress, record)
        stop = None
        if precision is None:
            run.show(0, planned.setup.count)
        else:
            stop = run_until(planned, kept, precision, baseline, run.show)
        if record is not None:
            keeper.record(record, needed=planned.images > 0)  # also if there was nothing to do
        shown = planned.setup.count if stop is None else stop.images
        counts = keeper.counts(shown)
    results = (_result(work, each, stop) for work, each in zip(planned.works, counts, strict=True))
    problems = run.sorted_problems(keeper.unread)
    notes = (*notes_on(planned.setup), *run.notes, *keeper.notes)
    return Evaluation(tuple(results), problems, stop, notes, answers_of(planned, kept, shown))


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

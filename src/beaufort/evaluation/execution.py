"""Execution of a plan: tasks go to an engine, and predictions to the store.

Images are processed in blocks. A block is decoded once. For each condition it is corrupted batch by batch,
ahead of the models, and every model that lacks predictions gets the same batch. The predictions of a block
are stored after its last batch: a kill loses at most one block of one condition per process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from beaufort._core.errors import OptionError
from beaufort.data import Problem
from beaufort.evaluation.engines import Engine, LocalEngine, NodeSpeed, ProcessEngine
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.notes import notes_on
from beaufort.evaluation.options import EngineOptions, LocalOptions, ProcessOptions, RayOptions
from beaufort.evaluation.planning import Facts, Plan, PlannedCell
from beaufort.evaluation.provenance import provenance
from beaufort.evaluation.ray_engine import RayEngine
from beaufort.evaluation.result_writer import ResultWriter
from beaufort.evaluation.runner import TaskRunner
from beaufort.evaluation.tasks import (
    BatchDone,
    CellCounts,
    Event,
    Note,
    PredictionRows,
    StoredPredictions,
    TaskFailure,
    TaskSplitter,
)
from beaufort.models import ChatClassifier, FilteredModel, Usage
from beaufort.store import Listing, Store, read_state
from beaufort.suites import Suite

_READ_NOW = (
    "it can be read now, but could not be read when it was evaluated, so it has no prediction; evaluate it "
    "with a new store"
)


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    done: int
    total: int
    """Number of predictions, over all models and conditions."""
    model: str
    condition: str
    accuracy: float | None
    """Accuracy of this model under this condition so far; None without labels."""
    nodes: Mapping[str, NodeSpeed] = field(default_factory=dict)
    """Statistics of the nodes of a cluster, by name."""
    warnings: tuple[str, ...] = ()
    """Likely mistakes found before the run; also among the notes of the result."""


@dataclass(frozen=True)
class CellResult:
    """Result of one model under one condition."""

    model: str
    condition: str
    images: int
    correct: int
    unread: int
    unlabeled: int
    """Number of readable images with an empty label set; they do not count."""
    reused: bool
    """Whether all predictions were in the store before the run."""
    fingerprint: str
    labels: str
    """Description of how labels and outputs are matched."""

    @property
    def accuracy(self) -> float:
        """Top-1 accuracy over readable images with a label."""
        return self.correct / self.images if self.images else float("nan")


@dataclass(frozen=True)
class RunOutcome:
    """Result of executing a plan."""

    results: tuple[CellResult, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...]
    nodes: Mapping[str, NodeSpeed]
    store: Store
    """The store; predictions of this run are read from memory if they are still there."""
    listing: Listing
    """The files of the store after the run."""
    parts: tuple[Sequence[PlannedCell], ...]
    """Cells of each dataset of the suite, without models that lack predictions."""
    images: int | None
    """Number of images evaluated per dataset; all if None."""
    origin: Mapping[str, Any]
    """Provenance of the run."""


def execute(
    plan: Plan,
    engine: EngineOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    checkpoints: Iterable[int] | None = None,
    enough: Callable[[int, Store], bool] | None = None,
) -> RunOutcome:
    """Compute the missing predictions of a plan and store them.

    Args:
        plan: the plan.
        engine: engine; local if None.
        progress: called after every batch.
        checkpoints: increasing numbers of images after which `enough` is called; if None, all images are
            evaluated at once.
        enough: function of the number of images and the store that returns whether to stop.
    """
    engine = engine or LocalOptions()
    adapting = next((cell.model.spec.name for cell in plan.cells if cell.gaps and cell.model.stateful), None)
    if adapting and not isinstance(engine, LocalOptions):
        raise OptionError(
            f"{adapting} adapts to the images in their order, so its streams cannot be shared by workers; "
            "use the engine local, and one process for each model to run several at once"
        )
    origin = provenance()
    runner = _runner(plan, engine.thread_count if isinstance(engine, LocalOptions) else 1)
    models = runner.models
    asked = {model: usage for model in models if (usage := _usage(model)) is not None}
    for model in {cell.model for cell in plan.cells}:
        if not isinstance(engine, LocalOptions) or model not in models:
            model.unload()
    record = None if plan.suite is None else partial(_record, plan, plan.suite, origin)
    if isinstance(engine, RayOptions) and record is not None and models:
        plan.store.write_run(*record())  # workers check that it is in the store
    running = _start(engine, runner, plan, origin)
    gather = running.gather if isinstance(running, RayEngine) else None
    with running, ResultWriter(plan.store, plan.cells, plan.listing, gather) as writer:
        processes = engine.count or 1 if isinstance(engine, ProcessOptions) else 1
        run = _Run(plan, running, writer, TaskSplitter(plan, models, processes), origin, progress, record)
        done = None
        if checkpoints is None or enough is None:
            run.evaluate()
        else:
            before = 0
            for done in checkpoints:
                run.evaluate(before, done)
                before = done
                if enough(done, writer.reader()):
                    break
        if record is not None:
            writer.record(record, needed=plan.images > 0)  # also if there was nothing to do
        failed = {number for failure in run.failures for number in failure.cells}
        counts = writer.counts(done, failed)
        nodes = dict(running.nodes)
        reader = writer.reader()
    lacking = {plan.cells[number].model for number in failed}
    parts = ([cell for cell in part if cell.model not in lacking] for part in plan.parts)
    both = zip(plan.cells, counts, strict=True)
    return RunOutcome(
        tuple(_result(cell, each, done) for cell, each in both if each is not None),
        (*plan.problems, *run.sorted_problems(writer.unread)),
        tuple(dict.fromkeys((*notes_on(plan), *run.notes, *writer.notes, *_costs(asked)))),
        tuple(_failure(plan, failure) for failure in run.failures),
        nodes,
        reader,
        writer.listing,
        tuple(part for part in parts if part),
        done,
        origin,
    )


def predict_gaps(
    plan: Plan, *, progress: Callable[[Progress], None] | None = None
) -> Iterator[tuple[PlannedCell, int, pa.Table]]:
    """Yield the missing predictions of a plan without storing them: cell, first image and rows."""
    engine = LocalOptions()
    runner = _runner(plan, engine.thread_count)
    total, done = plan.images, 0
    with LocalEngine(runner) as running:
        ends = [source.count for source in plan.sources]
        with closing(running.run([TaskSplitter(plan, runner.models, 1).split(0, ends)])) as events:
            for event in events:
                if isinstance(event, PredictionRows):
                    yield plan.cells[event.cell], event.start, event.table
                elif isinstance(event, BatchDone) and progress is not None:
                    done += event.images
                    cell = plan.cells[event.cell]
                    progress(Progress(done, total, cell.model.spec.name, str(cell.condition), None))


def _runner(plan: Plan, threads: int) -> TaskRunner:
    """Return the runner of the models that lack predictions."""
    models = tuple(dict.fromkeys(cell.model for cell in plan.cells if cell.gaps))
    spaces = {(cell.source_index, cell.model): cell.space for cell in plan.cells}
    return TaskRunner(
        plan.sources,
        models,
        tuple(tuple(spaces[index, model] for model in models) for index in range(len(plan.sources))),
        tuple(dict.fromkeys(cell.condition for cell in plan.cells if cell.gaps)),
        threads,
        plan.options.batch_size,
        plan.options.keep_logits,
        {
            number: state
            for number, cell in enumerate(plan.cells)
            if cell.gaps
            and cell.model.stateful
            and (start := cell.gaps[0][0])
            and (state := read_state(plan.store, cell.cell, start)) is not None
        },
    )


def _start(engine: EngineOptions, runner: TaskRunner, plan: Plan, origin: Mapping[str, Any]) -> Engine:
    if isinstance(engine, LocalOptions) or not runner.models:
        return LocalEngine(runner)
    if isinstance(engine, RayOptions):
        return RayEngine(runner, engine, plan.store, plan.cells, origin)
    return ProcessEngine(runner, engine.count or 1)


class _Run:
    """State of a run."""

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        writer: ResultWriter,
        splitter: TaskSplitter,
        origin: Mapping[str, Any],
        progress: Callable[[Progress], None] | None,
        record: Callable[[], tuple[Facts, Facts]] | None,
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.writer = writer
        self.splitter = splitter
        self.origin = origin
        self.progress = progress
        self.record = record
        self.problems: set[Problem] = set()
        self.notes: dict[str, None] = {}
        self.failures: list[TaskFailure] = []
        self.done = 0
        self.total = plan.images  # computed once: a sum over all cells
        self.right: dict[int, tuple[int, int]] = {}

    def evaluate(self, first: int = 0, behind: int | None = None) -> None:
        """Evaluate the images from `first` to `behind` - 1, and store the predictions."""
        ends = [source.count if behind is None else behind for source in self.plan.sources]
        if self.engine.one_model:
            queues: Iterable[Iterable[Any]] = self.splitter.split_by_model(first, ends)
        else:
            queues = [self.splitter.split(first, ends)]
        with closing(self.engine.run(queues)) as events:
            for event in events:
                self.handle(event)
        self.writer.flush()

    def handle(self, event: Event) -> None:
        match event:
            case PredictionRows(cell, start, table, backend, state):
                if self.record is not None:  # not earlier: its digest would delay the first batch
                    self.writer.record(self.record)
                self.writer.write(cell, start, table, {**self.origin, "backend": backend}, state)
            case StoredPredictions(cell, piece, counts):
                self.writer.stored(cell, piece, counts)
            case TaskFailure():
                self.failures.append(event)
            case BatchDone():
                self.count(event)
            case Note(text):
                self.notes[text] = None
            case Problem():
                self.problems.add(event)

    def count(self, batch: BatchDone) -> None:
        self.done += batch.images
        if self.progress is None:
            return
        right, seen = self.right.get(batch.cell, (0, 0))
        right, seen = self.right[batch.cell] = right + batch.correct, seen + batch.labeled
        cell = self.plan.cells[batch.cell]
        name, condition = cell.model.spec.name, str(cell.condition)
        accuracy = right / seen if seen else None
        nodes, warnings = self.engine.nodes, self.plan.warnings
        self.progress(Progress(self.done, self.total, name, condition, accuracy, nodes, warnings))

    def sorted_problems(self, unread: Collection[tuple[int, str]]) -> tuple[Problem, ...]:
        """Return each problem once, in the order of the dataset.

        Args:
            unread: sources and ids of images that an earlier run could not read; they are read again for the
                reason.
        """
        found = set(self.problems)
        known = {problem.id for problem in found}
        for number in {number for number, id in unread if id not in known}:
            source = self.plan.sources[number]
            rows = {id: row for row, id in enumerate(source.dataset.ids)}
            for id in (id for other, id in unread if other == number and id not in known):
                again = source.images(rows[id])
                found.add(again if isinstance(again, Problem) else Problem(id, _READ_NOW))
        if not found:
            return ()
        ids = dict.fromkeys(id for source in self.plan.sources for id in source.dataset.ids)
        place = {id: place for place, id in enumerate(ids)}
        return tuple(sorted(found, key=lambda problem: place[problem.id]))


def _usage(model: LazyModel) -> Usage | None:
    """Return the requests of a chat model so far; None for other models."""
    return _chat_model(model).usage() if model.spec.outcomes else None


def _chat_model(model: LazyModel) -> ChatClassifier:
    loaded = model.load()
    chat = loaded.model if isinstance(loaded, FilteredModel) else loaded
    assert isinstance(chat, ChatClassifier)
    return chat


def _costs(asked: Mapping[LazyModel, Usage]) -> Iterator[str]:
    """Yield what the requests of each chat model took since the run began, in all processes."""
    for model, before in asked.items():
        yield _chat_model(model).cost_note(before)


def expected_costs(plan: Plan) -> Iterator[str]:
    """Yield the number of requests of each chat model for the missing predictions, and their cost."""
    missing: dict[LazyModel, int] = {}
    for cell in plan.cells:
        if cell.gaps and cell.model.spec.outcomes:
            missing[cell.model] = missing.get(cell.model, 0) + cell.images
    for model, count in missing.items():
        yield _chat_model(model).expected_note(count)


def _failure(plan: Plan, failure: TaskFailure) -> str:
    names = sorted({plan.cells[number].model.spec.name for number in failure.cells})
    condition = plan.cells[failure.cells[0]].condition
    first, behind = failure.span
    return (
        f"{', '.join(names)} under {condition}, images {first} to {behind - 1}: every worker that tried it "
        f"crashed ({failure.reason})"
    )


def _record(plan: Plan, suite: Suite, origin: Mapping[str, Any]) -> tuple[Facts, Facts]:
    """Return the facts of the record of a run, and its notes."""
    models = {cell.cell.model["name"]: cell.cell.model for cell in plan.cells}
    facts: Facts = {"suite": suite.as_dict()}
    shared = {"seed": plan.source.seed, "models": list(models.values())}
    each = list(map(_record_of, plan.parts))
    if not suite.parts:
        ((some, notes),) = each
        return {**facts, **some, **shared}, {**notes, **origin}
    shown = {"shown": [notes for _, notes in each], **origin}
    return {**facts, "parts": [some for some, _ in each], **shared}, shown


def _record_of(cells: Sequence[PlannedCell]) -> tuple[Facts, Facts]:
    """Return facts and notes for the cells of one dataset."""
    source = cells[0].source
    facts: Facts = {"data": cells[0].cell.data}
    scored = {key: value for one in cells for key, value in one.cell.data.get("labels", {}).items()}
    if scored:
        facts["data"] = {key: value for key, value in facts["data"].items() if key != "labels"}
        facts["labels"] = {key: scored[key] for key in ("convention", "truths") if key in scored}
    if source.stored:
        facts["stored"] = {one.condition.done: one.cell.condition["stored"] for one in cells}
    notes: Facts = {"images": source.count, "classes": list(source.dataset.classes)}
    if (outputs := common_outputs(cells)) is not None:
        notes["outputs"] = outputs
    return facts, notes


def common_outputs(cells: Sequence[PlannedCell]) -> int | None:
    """Return the number of outputs of the models that stand for classes; None if it is unknown or differs."""
    specs = [one.model.spec for one in cells]
    outputs = {None if spec.classes is None else spec.classes - spec.outcomes for spec in specs}
    return outputs.pop() if len(outputs) == 1 else None


def _result(planned: PlannedCell, counts: CellCounts, done: int | None) -> CellResult:
    name, condition = planned.model.spec.name, str(planned.condition)
    reused = not planned.gaps_within(0, math.inf if done is None else done)
    return CellResult(name, condition, *counts, reused, planned.cell.fingerprint, str(planned.space))

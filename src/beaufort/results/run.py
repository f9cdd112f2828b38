"""`evaluate`: models × conditions × images, and the run that it returns."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.pages import render_table
from beaufort._core.text import counted
from beaufort.data import Problem
from beaufort.data.objects import Data
from beaufort.evaluation import (
    CellResult,
    Conditions,
    EngineOptions,
    Labels,
    LocalOptions,
    ModelCost,
    Models,
    NodeSpeed,
    Plan,
    PlannedCell,
    Progress,
    RayOptions,
    RunOptions,
    RunOutcome,
    as_store,
    check_models,
    common_outputs,
    execute,
    import_ray,
    measure_costs,
    parse_engine,
    plan,
)
from beaufort.metrics import metrics
from beaufort.metrics.stats import clopper_pearson, looks
from beaufort.results._match import ResultSetting, Scored, order_of
from beaufort.results.adaptation import StreamScores, stream_scores
from beaufort.results.baseline import check_baseline
from beaufort.results.other_models import ListedStore
from beaufort.results.results import Results
from beaufort.results.score_tables import data_frame
from beaufort.results.scores import Scores
from beaufort.results.scoring import score
from beaufort.results.tracking import Trackers
from beaufort.store import Cell, FileStore, Store
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition

if TYPE_CHECKING:
    import pandas as pd

FINEST = 0.05
"""Smallest precision, in percentage points; less would require millions of images."""


@dataclass(frozen=True)
class Stop:
    """When a run with a precision stopped, and why."""

    images: int
    """Number of images evaluated."""
    of: int
    """Number of images in the dataset."""
    precision: float
    """Requested precision, in percentage points: 1.0 is ± 1 %."""
    half_widths: Mapping[str, Mapping[str, float]]
    """Half-width of the interval of each headline metric, by model and metric."""

    @property
    def met(self) -> bool:
        """Whether it stopped because every interval is narrow enough, and not because images ran out."""
        return 100 * self.widest <= self.precision

    @property
    def widest(self) -> float:
        """Half-width of the widest interval, a proportion."""
        return max(width for one in self.half_widths.values() for width in one.values())


@dataclass(frozen=True)
class Run:
    """The result of `evaluate`: printed, it is a short table with intervals."""

    results: tuple[CellResult, ...]
    """A row for each model and condition."""
    problems: tuple[Problem, ...]
    """Files of the data, and images, that could not be read, in this run or an earlier one that is reused."""
    stop: Stop | None = None
    """When a run with a precision stopped, and why."""
    notes: tuple[str, ...] = ()
    """Notes, such as corruptions that the device does not support."""
    store: Store | None = field(default=None, repr=False, compare=False)
    """Store of the predictions; in memory if none was passed."""
    predictions: tuple[Results, ...] = field(default=(), repr=False, compare=False)
    """The predictions for each dataset of the suite, ready to be scored; empty without a suite."""
    failures: tuple[str, ...] = ()
    """Parts that ended every worker that tried them; their results are omitted."""
    nodes: Mapping[str, NodeSpeed] = field(default_factory=dict, repr=False, compare=False)
    """Work of each machine of a cluster, by name."""
    costs: tuple[ModelCost, ...] = field(default=(), repr=False, compare=False)
    """Latency and memory of each model, with the option `time`; the first model is the reference."""
    streams: tuple[StreamScores, ...] = field(default=(), repr=False, compare=False)
    """Scores of streams, for models that adapt."""

    def scores(self, **options: Any) -> Scores:
        """Return the suite's metrics with intervals; the options are those of `beaufort.results.score`."""
        found = self.part_scores(**options)
        if len(found) > 1:
            raise OptionError(
                f"scores() requires a suite of one dataset, got {len(found)}; use part_scores()"
            )
        return found[0]

    def part_scores(self, **options: Any) -> tuple[Scores, ...]:
        """Return the scores of each dataset of a suite of several."""
        if self.failures and not self.predictions:
            raise OptionError(f"no model has predictions to score: {self.failures[0]}")
        if not self.predictions and self.streams:
            raise OptionError("this run has only streams; their scores are in the attribute streams")
        if not self.predictions:
            raise OptionError("scores require a suite; pass one to evaluate")
        return tuple(score(one, **options) for one in self.predictions)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write a report; the format follows the file extension, as for `beaufort.report.write_report`."""
        from beaufort.report import write_report

        return write_report(self.scores(), path, **options)

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for each model and condition; `low` and `high` are 95 % intervals."""
        intervals = [clopper_pearson(one.correct, one.images) if one.images else None for one in self.results]
        names = ("model", "condition", "images", "correct", "unread", "accuracy")
        columns = {name: [getattr(one, name) for one in self.results] for name in names}
        columns["low"] = [None if one is None else one.low for one in intervals]
        columns["high"] = [None if one is None else one.high for one in intervals]
        columns["labels"] = [one.labels for one in self.results]
        return data_frame(columns)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines: list[str] = []
        if self.scorable:
            for scores in self.part_scores(calibration=False):
                lines += _score_lines(scores)
        elif self.streams:
            for stream in self.streams:
                lines += [stream.title, *_aligned(stream.rows), *(f"note: {note}" for note in stream.notes)]
        else:
            images = counted(max((one.images for one in self.results), default=0), "image")
            lines.append(f"{images}; 95 % intervals")
            lines += _aligned([("model", "condition", "accuracy"), *map(_accuracy_row, self.results)])
        lines += [f"note: {note}" for note in self.notes]
        for many, what in ((self.problems, "image or file that cannot be read"), (self.failures, "failure")):
            if many:
                lines.append(f"{counted(len(many), what)}; the first: {many[0]}")
        report = "run.report('report.html'), " if self.scorable else ""
        return [*lines, f"next: {report}run.to_pandas()"]

    @property
    def scorable(self) -> bool:
        """Whether every condition has predictions and a suite defines the metrics."""
        return bool(self.predictions) and all(one.images for one in self.results)

    def _repr_html_(self) -> str:
        if self.scorable:
            return "".join(one._repr_html_() for one in self.part_scores(calibration=False))
        if self.streams:
            return "".join(one._repr_html_() for one in self.streams)
        return render_table(
            "Accuracy with 95 % intervals",
            ["Model", "Condition", "Images", "Accuracy"],
            [[*(row := _accuracy_row(one))[:2], f"{one.images:,}", row[2]] for one in self.results],
            self.notes,
        )


def _accuracy_row(one: CellResult) -> tuple[str, str, str]:
    interval = f"{clopper_pearson(one.correct, one.images):.1%}" if one.images else "–"
    return one.model, one.condition, interval


def _score_lines(scores: Scores) -> list[str]:
    names = [scores.metric_title(name) for name in scores.models[0].metrics]
    clean = ["clean accuracy"] if scores.with_clean else []
    rows = [("model", *names, *clean)]
    for one in scores.models:
        values = [metrics[name].shown(value) for name, value in one.metrics.items()]
        rows.append((one.model, *values, *([f"{one.clean:.1%}"] if scores.with_clean else [])))
    images = counted(scores.images, "image")
    head = f"{scores.suite} on {scores.results.dataset}: {images}; {100 * scores.level:g} % intervals"
    return [head, *_aligned(rows), *(f"note: {note}" for note in scores.notes)]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)
    return [line.rstrip() for line in lines]


def plan_run(
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
    """Return what `evaluate` would do with the same arguments; models that lack predictions are checked."""
    planned = plan(
        models,
        suite,
        data,
        store,
        limit=limit,
        labels=labels,
        seed=seed,
        options=options,
        keep_models=keep_models,
    )
    precision = planned.options.precision
    if precision is not None:
        if not isinstance(precision, int | float) or not precision >= FINEST:
            raise OptionError(
                f"precision must be at least {FINEST} percentage points, got {precision!r}; 1 is ± 1 %"
            )
        if planned.suite is None:
            raise OptionError("precision requires a suite, whose metrics it applies to")
        if len(planned.sources) > 1:
            raise OptionError(
                f"precision requires one dataset with one preparation, got {len(planned.sources)}; omit it"
            )
    if planned.suite is not None:
        _check_baselines(planned, planned.suite)
    return check_models(planned, runs_here=keep_models)


def _check_baselines(planned: Plan, suite: Suite) -> None:
    """Raise an error for an unknown baseline before anything is run; the store is read if need be."""
    way_out = "evaluate your own baseline first, or in the same run"
    models = list(dict.fromkeys(cell.model.spec.name for cell in planned.cells))
    for part in suite.parts or (suite,):
        try:
            check_baseline(part, models, way_out)
        except BeaufortError:
            stored = [one["name"] for record in planned.store.runs() for one in record.get("models", ())]
            check_baseline(part, [*models, *stored], way_out)


def evaluate(
    models: Models,
    suite: Conditions,
    data: Data,
    store: str | Path | Store | None = None,
    *,
    limit: int | None = None,
    labels: Labels = None,
    seed: int = 0,
    engine: str | EngineOptions = "local",
    options: RunOptions | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Run every model on every image under every condition, and store the predictions; skip stored ones.

    Args:
        models: one model or a list of them: texts for `load_model`, `Model`s, torch modules, or functions
            from uint8 images `(n, h, w, c)` to logits.
        suite: a suite, its name or file; a list of conditions; or a list of names of corruptions, each at
            all five severities, beside the clean images.
        data: a text for `load_dataset`, a `Dataset`, `(images, labels)` as arrays or tensors, or a torch
            `Dataset` or `DataLoader`, whose items are read in their own order; images are uint8, or floats
            from 0 to 1. For a suite of several datasets, a mapping with one for each name. A published C-set
            as a whole, `cifar10-c:FOLDER`, is evaluated as it is stored.
        store: a folder or URL that keeps the predictions, or any `Store`; in memory if None.
        limit: evaluate only so many images, spread over the classes; which of a class's images come is
            decided by `seed`.
        labels: `identity` where labels are numbers of outputs; outputs by class, or a JSON file of them. If
            None, labels and outputs are matched by name; an error if that is ambiguous.
        seed: of everything that is random.
        engine: where the work is done: `local` or `local:THREADS`; `processes:N` for worker processes with
            one thread each; `ray:address=auto,workers=N,cpus=N,gpus=N` for a Ray cluster.
        options: less common options.
        progress: called after every batch.
    """
    chosen = parse_engine(engine)
    if isinstance(chosen, RayOptions):
        if store is None:
            raise OptionError("engine ray requires a store that all nodes can access")
        import_ray()  # an error, if it is not installed, before anything else
    kept = memory_store() if store is None else as_store(store)
    trackers = Trackers(options.trackers if options is not None else ())
    planned = plan_run(
        models,
        suite,
        data,
        kept,
        limit=limit,
        labels=labels,
        seed=seed,
        options=None if options is None else replace(options, trackers=()),  # others need not be picklable
        keep_models=isinstance(chosen, LocalOptions),
    )
    chat = [cell.model.spec.name for cell in planned.cells if cell.model.spec.outcomes]
    if planned.options.time and chat:
        raise OptionError(f"time cannot be used, because {chat[0]} is a chat model")
    trackers.start(planned)
    run = _execute(planned, chosen, progress, kept)
    if planned.options.time:
        run = replace(run, costs=_costs(planned))
    trackers.end(run)
    return run


def _costs(planned: Plan) -> tuple[ModelCost, ...]:
    """Return the latency and the memory of the models, for copies of the first image."""
    lazy = list({id(cell.model): cell.model for cell in planned.cells}.values())
    _, image = planned.source.first_image
    return measure_costs(lazy, np.stack([image] * (planned.options.batch_size or 1)))


def _execute(
    planned: Plan, engine: EngineOptions, progress: Callable[[Progress], None] | None, kept: Store
) -> Run:
    """Run a plan to its end, or until the metrics have the requested precision."""
    precision = planned.options.precision
    if precision is None:
        return _run(execute(planned, engine, progress=progress), None, kept, _streams(planned))
    stops: list[Stop] = []

    def enough(count: int, reader: Store) -> bool:
        stops.append(_stop(planned, reader, count, precision))
        return stops[-1].met

    checkpoints = looks(planned.source.count)
    outcome = execute(planned, engine, progress=progress, checkpoints=checkpoints, enough=enough)
    return _run(outcome, stops[-1], kept)


def _streams(planned: Plan) -> list[Cell]:
    """Return the cells of streams."""
    return [cell.cell for cell in planned.cells if cell.source.schedule is not None]


def _run(outcome: RunOutcome, stop: Stop | None, store: Store, streams: Sequence[Cell] = ()) -> Run:
    predictions = tuple(
        _results(
            part,
            outcome.images or part[0].source.count,
            ListedStore(outcome.store, outcome.listing),
            (outcome.origin,),
        )
        for part in outcome.parts
        if part[0].source.schedule is None
    )
    scored = stream_scores(store, cells=streams) if streams and isinstance(store, FileStore) else ()
    return Run(
        outcome.results,
        outcome.problems,
        stop,
        outcome.notes,
        store,
        predictions,
        outcome.failures,
        outcome.nodes,
        streams=scored,
    )


def _stop(planned: Plan, reader: Store, count: int, precision: float) -> Stop:
    """Return the widths of the intervals of headline metrics after a number of images."""
    results = _results(planned.cells, count, ListedStore(reader, reader.listing()))
    scores = score(results, baseline=planned.options.baseline, calibration=False)
    wanted = set(scores.suite.metrics) & set(scores.models[0].metrics) or {scores.headline}
    half_widths = {
        one.model: {name: value.half_width for name, value in one.metrics.items() if name in wanted}
        for one in scores.models
    }
    return Stop(count, planned.source.count, precision, half_widths)


def _results(
    planned: Sequence[PlannedCell],
    count: int,
    store: ListedStore,
    origins: tuple[Mapping[str, Any], ...] = (),
) -> Results:
    """Return the predictions for the first `count` images of one dataset of a suite."""
    source = planned[0].source
    suite = source.suite
    assert suite is not None
    if suite.clean and not any(one.condition.clean for one in planned):
        suite = suite.without_clean()
    cells: dict[str, dict[Condition, Cell]] = {}
    for one in planned:
        cells.setdefault(one.model.spec.name, {})[one.condition] = one.cell
    scored = Scored.of(
        {key: value for one in planned for key, value in one.cell.data.get("labels", {}).items()}
    )
    setting = ResultSetting(str(planned[0].cell.data["digest"]), order_of(source.order), source.seed, scored)
    return Results(
        suite,
        setting,
        source.dataset.name,
        source.dataset.classes,
        cells,
        {},
        dict.fromkeys(cells, store),
        tuple(map(dict, origins)),
        limit=count,
        outputs=common_outputs(planned),
        stored=source.stored,
    )


def memory_store() -> FileStore:
    """Return an empty store in memory, freed with the last reference to it."""
    store = FileStore(f"memory://beaufort-{uuid4().hex}")
    weakref.finalize(store, _forget, store.location)
    return store


def _forget(location: str) -> None:
    from fsspec import filesystem

    memory = filesystem("memory")
    if memory.exists(location):
        memory.rm(location, recursive=True)

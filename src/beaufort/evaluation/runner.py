"""Runs tasks: decode, corrupt, predict and score.

A `TaskRunner` is picklable and yields events; the store, the plan and the progress are those of the caller.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.arrays import Images
from beaufort._core.errors import ImageFileError
from beaufort.data import Decoders, Problem
from beaufort.data.labels import NO_LABEL, LabelSpace
from beaufort.evaluation.backends import Backend, BatchGroup, choose_backend
from beaufort.evaluation.batches import Batch, ImageBlock, are_neighbors
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.model_checks import probabilities_note
from beaufort.evaluation.planning import Range
from beaufort.evaluation.scoring import BatchScores, predict
from beaufort.evaluation.sources import ImageSource
from beaufort.evaluation.tasks import (
    BatchDone,
    Event,
    Note,
    PredictionRows,
    State,
    Task,
    TaskPart,
    by_sequence,
)
from beaufort.models import Model, StatefulModel
from beaufort.models.scoring import PredictionScores, correct, join_scores, score_logits
from beaufort.store import PredictionsError, table_of, without_prediction
from beaufort.suites.conditions import Condition

_NO_SCORES = score_logits(np.empty((0, 1), np.float32), np.empty(0, np.int64))


@dataclass(frozen=True)
class TaskRunner:
    """Runs tasks, with everything that the tasks of a run share."""

    sources: tuple[ImageSource, ...]
    """One for each dataset, and for each condition of a stored one."""
    models: tuple[LazyModel, ...]
    spaces: tuple[tuple[LabelSpace, ...], ...]
    """The label space of each model, for each source."""
    conditions: tuple[Condition, ...]
    threads: int
    """Threads that decode and corrupt images, per process."""
    batch_size: int | None
    """Images per model call; chosen from the image size if None."""
    keep_logits: bool
    states: Mapping[int, State] = field(default_factory=dict)
    """States at which models that adapt continue, by cell; others start from the source model."""

    def run(self, tasks: Iterable[Task]) -> Generator[Event]:
        """Run tasks in order, and yield an event for each finished batch and part."""
        with ThreadPoolExecutor(self.threads) as pool, _memory_kept(2 * self.threads):
            try:
                for source, some in itertools.groupby(tasks, key=lambda task: task.source):
                    yield from _SourceRunner(self, source, pool).run(some)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def for_worker(self, threads: int = 1, *, limit_models: bool = True) -> TaskRunner:
        """Return the runner of a worker; with `limit_models`, models use one thread as well."""
        for model in self.models:
            model.check_pickle()
        models = tuple(model.for_one_thread() for model in self.models) if limit_models else self.models
        return replace(self, models=models, threads=threads)

    def for_model(self, number: int) -> TaskRunner:
        """Return the runner for one of the models."""
        spaces = tuple((each[number],) for each in self.spaces)
        return replace(self, models=(self.models[number],), spaces=spaces)


@contextmanager
def _memory_kept(blocks: int) -> Iterator[None]:
    """Let Pillow reuse the memory of images; a block of its allocator has at most 16 MB."""
    allocator: Any = Image.core  # type: ignore[attr-defined]
    before = allocator.get_blocks_max()
    allocator.set_blocks_max(max(before, blocks))
    try:
        yield
    finally:
        allocator.set_blocks_max(before)


class _SourceRunner:
    """Runs the tasks of one image source; models are loaded for the first task."""

    def __init__(self, runner: TaskRunner, source: int, pool: Executor) -> None:
        self.runner = runner
        self.source = runner.sources[source]
        self.spaces = runner.spaces[source]
        self.pool = pool
        self.models: tuple[Model, ...] = ()
        self.labels = [self.source.labels(space) for space in self.spaces]
        self.decoders: Decoders | None = None
        self.warned: set[str] = set()
        self.resumed: set[int] = set()
        self.states: dict[tuple[int, Range], State] = {}
        """States of models that adapt after the last batch of a part, by cell."""
        self.named: tuple[tuple[Range, list[int]], tuple[int, ...], tuple[str, ...]] = ((0, 0), []), (), ()
        """Span and unreadable images of the last part, its readable images, and their ids."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Event]:
        rest = iter(tasks)
        first = next(rest, None)
        if first is None:
            return
        self.models = tuple(model.load() for model in self.runner.models)
        for model in self.models:
            if isinstance(model, StatefulModel):
                give_source_images(model, self.source)
        with choose_backend(self.models, self.source, self.runner.threads) as backend:
            yield from map(Note, backend.notes(self.runner.conditions))
            decoders = Decoders(self.source.images, self.runner.threads)
            worth = backend.ahead and self.source.should_use_decoders
            with decoders if worth else nullcontext() as self.decoders:
                yield from self.events(backend, itertools.chain([first], rest))

    def events(self, backend: Backend, tasks: Iterable[Task]) -> Iterator[Event]:
        done: dict[tuple[int, Range], list[BatchScores]] = {}
        for number, model, batch, wait in self.predicted(backend, tasks):
            key = number, batch.part.span
            if batch.rows:
                scored = wait()
                done.setdefault(key, []).append(scored)
                labels = _at(self.labels[model], batch.rows)
                known = len(labels) if labels.ndim == 1 else int((labels != NO_LABEL).any(axis=1).sum())
                yield BatchDone(number, len(labels), known, int(correct(scored[0].top, labels).sum()))
            if batch.last:
                scores, table = self.table(batch, done.pop(key, []), model)
                yield from self.warn_of_probabilities(model, scores)
                yield from batch.block.problems()  # before the predictions, which may end a run
                state = self.states.pop(key, None)
                yield PredictionRows(number, batch.part.span[0], table, backend.used(batch.condition), state)

    def predicted(
        self, backend: Backend, tasks: Iterable[Task]
    ) -> Iterator[tuple[int, int, Batch, Callable[[], BatchScores]]]:
        """Yield each batch with its cell, its model, and a function that waits for the scores."""
        waiting: deque[tuple[int, int, Batch, Callable[[], BatchScores]]] = deque()
        for batch, images in backend.corrupted(self.pool, self.batches(backend, tasks)):
            for number, model in batch.part.cells:
                self.check_order(batch)
                self.adjust(number, model, batch)
                wait = self.predict(model, images, batch) if batch.rows else _nothing
                if batch.last and isinstance(one := self.models[model], StatefulModel):
                    self.states[number, batch.part.span] = one.state()
                waiting.append((number, model, batch, wait))
                if len(waiting) > backend.lag:
                    yield waiting.popleft()
        yield from waiting

    def check_order(self, batch: Batch) -> None:
        """Raise an error if a batch of a stream is not the scheduled one, because an image is missing."""
        schedule = self.source.schedule
        if schedule is None or (batch.rows and len(batch.rows) == schedule.batch_at(batch.rows[0])):
            return
        first = next(batch.block.problems(), None)
        why = f"{first.id} cannot be read: {first.message}" if first else "images have different sizes"
        raise ImageFileError(f"the batches of {batch.condition} are incomplete, because {why}")

    def adjust(self, cell: int, model: int, batch: Batch) -> None:
        """Reset a model that adapts where the stream says so, or continue from its stored state."""
        schedule, one = self.source.schedule, self.models[model]
        if schedule is None or not isinstance(one, StatefulModel):
            return
        position = batch.rows[0]
        if cell in self.runner.states and cell not in self.resumed:
            one.load_state(self.runner.states[cell])
        self.resumed.add(cell)
        if position in schedule.resets:
            one.reset()
        if position == 0 and (passes := getattr(one, "passes", None)):
            passes[:] = [0] * len(passes)

    def predict(self, model: int, images: Images, batch: Batch) -> Callable[[], BatchScores]:
        labels = _at(self.labels[model], batch.rows)
        one, space, seed = self.models[model], self.spaces[model], self.source.seed
        return predict(one, images, batch, labels, space, seed=seed, keep_logits=self.runner.keep_logits)

    def batches(self, backend: Backend, tasks: Iterable[Task]) -> Iterator[BatchGroup]:
        """Yield the batches of all tasks; with a device, the next block is decoded ahead."""
        schedule, frames = self.source.schedule, self.source.frames
        size = self.runner.batch_size if schedule is None else schedule.batch
        block: ImageBlock | None = None
        for task, then in _with_next(tasks) if backend.ahead else ((task, None) for task in tasks):
            if block is None or block.span != task.span:
                block = ImageBlock(self.source, task.span, self.pool, self.decoders)
            its = block
            if then is not None and then.span != task.span:
                block = ImageBlock(self.source, then.span, self.pool, self.decoders)
            in_order = not backend.ahead
            size_for = lambda n: size or backend.batch_size(n // frames)  # noqa: E731
            yield from _batches(task, its, size_for, in_order=in_order)

    def table(self, batch: Batch, done: list[BatchScores], model: int) -> tuple[PredictionScores, pa.Table]:
        """Return the scores and the table of a finished part, with empty rows for unreadable images."""
        dataset, span = self.source.dataset, batch.part.span
        lost = batch.block.unread(span)
        if done:
            scores = join_scores([scores for scores, _ in done])
            kept = [logits for _, logits in done if logits is not None]
        else:
            scores, kept = _NO_SCORES, [np.empty((0, 1), np.float32)] if self.runner.keep_logits else []
        if self.named[0] != (span, lost):  # the same for every condition
            read = tuple(sorted({*range(*span)} - {*lost}))
            self.named = (span, lost), read, batch.block.ids(read)
        _, read, ids = self.named
        sets = None if self.source.label_sets is None else self.labels[model]
        logits = np.concatenate(kept) if kept else None
        right = None if sets is None else _at(sets, read)
        try:
            table = table_of(ids, _at(dataset.labels, read), scores, logits, right)
        except PredictionsError as error:
            error.add_note(f"{self.models[model].spec.name}, under {batch.condition}")
            raise
        if lost:
            names, valid = [dataset.ids[i] for i in lost], None if sets is None else sets[lost]
            empty = without_prediction(names, dataset.labels[lost], table.schema, valid)
            order = np.argsort([*read, *lost], kind="stable")
            table = pa.concat_tables([table, empty]).take(order)
        return scores, table

    def warn_of_probabilities(self, model: int, scores: PredictionScores) -> Iterator[Note]:
        """Yield a note, once per model, if the outputs look like probabilities."""
        one = self.models[model]
        name, suspect = one.spec.name, scores.are_probabilities
        if name not in self.warned and len(suspect) and suspect.all() and scores.top.shape[1] > 1:
            self.warned.add(name)
            yield Note(probabilities_note(one))


def give_source_images(model: StatefulModel, source: ImageSource) -> None:
    """Give a model the clean images that it uses before a stream: the first ones of the dataset."""
    wanted, base = getattr(model, "source_images", 0), source.base
    if wanted and base is not None:
        images = [base.images(place) for place in range(min(wanted, base.count))]
        if problems := [one for one in images if isinstance(one, Problem)]:
            raise ImageFileError(f"{problems[0].id} cannot be read: {problems[0].message}")
        model.use_source_images(np.stack(images))  # type: ignore[attr-defined]


def _batches(
    task: Task, block: ImageBlock, size_for: Callable[[int], int], *, in_order: bool
) -> Iterator[BatchGroup]:
    """Yield the batches of a task, part by part; unless in order, parts that wait for images are deferred.

    The batches of a sequence are yielded together.
    """
    begun: deque[tuple[tuple[TaskPart, ...], int]] = deque()

    def rest(parts: tuple[TaskPart, ...], number: int) -> Iterator[BatchGroup]:
        groups = block.groups(parts[0].span, size_for)
        while number == 0 or not groups[number - 1].last:
            yield tuple(Batch(part, block, *groups[number]) for part in parts)
            number += 1
            if not in_order and not groups.ready(number):
                begun.append((parts, number))
                return

    for parts in by_sequence(task.parts):
        yield from rest(parts, 0)
        while begun and block.groups(begun[0][0][0].span, size_for).ready(begun[0][1]):
            yield from rest(*begun.popleft())
    while begun:
        yield from rest(*begun.popleft())


def _with_next(tasks: Iterable[Task]) -> Iterator[tuple[Task, Task | None]]:
    rest = iter(tasks)
    task = next(rest, None)
    while task is not None:
        then = next(rest, None)
        yield task, then
        task = then


def _at(values: NDArray[Any], rows: tuple[int, ...]) -> NDArray[Any]:
    """Return rows of an array; a slice if they are consecutive."""
    if are_neighbors(rows):
        return values[rows[0] : rows[-1] + 1]
    return values[list(rows)]


def _nothing() -> BatchScores:
    return _NO_SCORES, None

"""A unit of work: models under some conditions on a span of images, as a value that another process can do.

`work` is the one function that does it, wherever that is. It gives back what to store; who asked for it keeps
the store, the plan and the progress.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.arrays import Images
from beaufort.data import Decoders, Problem
from beaufort.data.labels import NO_LABEL, LabelSpace
from beaufort.evaluation.backends import Backend, BatchAnswer, Film, ask, ask_changed, choose_backend
from beaufort.evaluation.blocks import Batch, Block, UnitPart, are_neighbors, in_films
from beaufort.evaluation.keeper import Counts
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.planning import Range, Setup
from beaufort.models import Model
from beaufort.models.filtered import FilteredModel
from beaufort.store import (
    AnswerScores,
    Piece,
    PredictionsError,
    correct,
    join_scores,
    score_logits,
    table_of,
    unanswered,
)
from beaufort.suites.conditions import Condition


@dataclass(frozen=True)
class Job:
    """What all units of a run share."""

    setups: tuple[Setup, ...]
    """One for each data set, and for each condition of a stored one."""
    models: tuple[LazyModel, ...]
    spaces: tuple[tuple[LabelSpace, ...], ...]
    """The label space of each model, for each setup."""
    conditions: tuple[Condition, ...]
    jobs: int
    """Threads that decode and corrupt, in each process."""
    batch_size: int | None
    """Images that a model sees at once; by their size if None."""
    keep_logits: bool


@dataclass(frozen=True)
class Unit:
    """Work on one block of images, which are decoded once."""

    span: Range
    parts: tuple[UnitPart, ...]
    setup: int = 0
    """Index of the setup in the job."""


class Answered(NamedTuple):
    """A batch that was answered."""

    work: int
    images: int
    labeled: int
    """Those of them that have a label."""
    correct: int


class Made(NamedTuple):
    """Answers to store: those of a work to the images from `start` on."""

    work: int
    start: int
    table: pa.Table
    backend: str
    """Name of the device that corrupted the images."""


class Written(NamedTuple):
    """Answers that were stored where they were made."""

    work: int
    piece: Piece
    counts: Counts


class Failed(NamedTuple):
    """A part that ended its worker each time it was tried."""

    works: tuple[int, ...]
    span: Range
    reason: str


class Note(NamedTuple):
    """What a reader of the results should know."""

    text: str


Message = Answered | Made | Written | Failed | Note | Problem


def work(job: Job, units: Iterable[Unit]) -> Generator[Message]:
    """Do some units, one after the other, and tell of every batch and every part that is done."""
    with ThreadPoolExecutor(job.jobs) as pool, _memory_kept(2 * job.jobs):
        try:
            for setup, some in itertools.groupby(units, key=lambda unit: unit.setup):
                yield from _Working(job, setup, pool).units(some)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


@contextmanager
def _memory_kept(blocks: int) -> Iterator[None]:
    """Let Pillow keep the memory of pictures for the next ones: to give it back and get it anew takes longer.

    A block has 16 MB at most.
    """
    allocator: Any = Image.core  # type: ignore[attr-defined]
    before = allocator.get_blocks_max()
    allocator.set_blocks_max(max(before, blocks))
    try:
        yield
    finally:
        allocator.set_blocks_max(before)


class _Working:
    """What does the units of one setup in this process; models are loaded for the first one."""

    def __init__(self, job: Job, setup: int, pool: Executor) -> None:
        self.job = job
        self.setup = job.setups[setup]
        self.spaces = job.spaces[setup]
        self.pool = pool
        self.models: tuple[Model, ...] = ()
        self.truths = [self.setup.truth(space) for space in self.spaces]
        self.decoders: Decoders | None = None
        self.told: set[str] = set()
        self.named: tuple[tuple[Range, list[int]], tuple[int, ...], tuple[str, ...]] = ((0, 0), []), (), ()
        """Images of the last part with those that could not be read, and the others with their ids."""

    def units(self, units: Iterable[Unit]) -> Iterator[Message]:
        rest = iter(units)
        first = next(rest, None)
        if first is None:
            return
        self.models = tuple(model.load() for model in self.job.models)
        with choose_backend(self.models, self.setup, self.job.jobs) as backend:
            yield from map(Note, backend.notes(self.job.conditions))
            decoders = Decoders(self.setup.pictures, self.job.jobs)
            worth = backend.ahead and self.setup.worth_decoders
            with decoders if worth else nullcontext() as self.decoders:
                yield from self.answers(backend, itertools.chain([first], rest))

    def answers(self, backend: Backend, units: Iterable[Unit]) -> Iterator[Message]:
        answers: dict[tuple[int, Range], list[BatchAnswer]] = {}
        for number, batch, wait in self.asked(backend, units):
            if batch.rows:
                answer = wait()
                answers.setdefault((number, batch.part.span), []).append(answer)
                truth = _at(self.truths[_model(batch.part, number)], batch.rows)
                known = len(truth) if truth.ndim == 1 else int((truth != NO_LABEL).any(axis=1).sum())
                yield Answered(number, len(truth), known, int(correct(answer[0].top, truth).sum()))
            if batch.group.last:
                model = _model(batch.part, number)
                scores, table = self.table(batch, answers.pop((number, batch.part.span), []), model)
                yield from self.doubts(model, scores)
                yield from batch.block.problems()  # before the answers: who stores them may then be done
                yield Made(number, batch.part.span[0], table, backend.used(batch.condition))

    def asked(
        self, backend: Backend, units: Iterable[Unit]
    ) -> Iterator[tuple[int, Batch, Callable[[], BatchAnswer]]]:
        """Every batch for every work that wants it, with what waits for its answer."""
        waiting: deque[tuple[int, Batch, Callable[[], BatchAnswer]]] = deque()
        for batch, shown in backend.shown(self.pool, self.films(backend, units)):
            for number, model in batch.part.works:
                wait = self.ask(model, shown, batch) if batch.rows else _nothing
                waiting.append((number, batch, wait))
                if len(waiting) > backend.lag:
                    yield waiting.popleft()
        yield from waiting

    def films(self, backend: Backend, units: Iterable[Unit]) -> Iterator[Film]:
        """The batches of all units, whose blocks are decoded a little before their turn."""
        size, frames = self.job.batch_size, self.setup.frames
        block: Block | None = None
        for unit, then in _with_next(units) if backend.ahead else ((unit, None) for unit in units):
            if block is None or block.span != unit.span:
                block = Block(self.setup, unit.span, self.pool, self.decoders)
            its = block
            if then is not None and then.span != unit.span:
                block = Block(self.setup, then.span, self.pool, self.decoders)
            in_order = not backend.ahead
            size_for = lambda n: size or backend.batch_size(n // frames)  # noqa: E731
            yield from _films(unit, its, size_for, in_order=in_order)

    def ask(self, model: int, shown: Images, batch: Batch) -> Callable[[], BatchAnswer]:
        truth = _at(self.truths[model], batch.rows)
        space, keep = self.spaces[model], self.job.keep_logits
        if batch.condition.needs_model:
            one = self.models[model]
            return ask_changed(one, shown, batch, self.setup, truth, space, keep_logits=keep)
        return ask(self.models[model], shown, truth, space, keep_logits=keep)

    def table(self, batch: Batch, answers: list[BatchAnswer], model: int) -> tuple[AnswerScores, pa.Table]:
        """The answers to a part, of which this is the last batch, with empty rows for images without one."""
        dataset, span = self.setup.dataset, batch.part.span
        lost = batch.block.unread(span)
        if answers:
            scores = join_scores([scores for scores, _ in answers])
            kept = [logits for _, logits in answers if logits is not None]
        else:
            scores, kept = _NO_SCORES, [np.empty((0, 1), np.float32)] if self.job.keep_logits else []
        if self.named[0] != (span, lost):  # the same for every condition
            read = tuple(sorted({*range(*span)} - {*lost}))
            self.named = (span, lost), read, batch.block.ids(read)
        _, read, ids = self.named
        sets = None if self.setup.truths is None else self.truths[model]
        logits = np.concatenate(kept) if kept else None
        right = None if sets is None else _at(sets, read)
        try:
            table = table_of(ids, _at(dataset.labels, read), scores, logits, right)
        except PredictionsError as error:
            error.add_note(f"{self.models[model].spec.name}, under {batch.condition}")
            raise
        if lost:
            names, truth = [dataset.ids[i] for i in lost], None if sets is None else sets[lost]
            empty = unanswered(names, dataset.labels[lost], table.schema, truth)
            order = np.argsort([*read, *lost], kind="stable")
            table = pa.concat_tables([table, empty]).take(order)
        return scores, table

    def doubts(self, model: int, scores: AnswerScores) -> Iterator[Note]:
        """Say once of a model that it seems to give probabilities."""
        one = self.models[model]
        name = one.spec.name
        if name not in self.told and len(scores.shares) and scores.shares.all() and scores.top.shape[1] > 1:
            self.told.add(name)
            right = "leaves accuracies right"
            if isinstance(one, FilteredModel) and one.filter.views is not None:
                right = "may change accuracies, as means over views are others"
            yield Note(
                f"the answers of {name} look like probabilities: none is below 0, and each row sums to 1. "
                f"They are taken for logits, which makes p, nll, brier and entropy wrong and {right}; give "
                "what comes before the softmax, or the logarithms"
            )


def _films(unit: Unit, block: Block, size_for: Callable[[int], int], *, in_order: bool) -> Iterator[Film]:
    """The batches of a unit, part by part; unless in order, others begin while those of one are decoded.

    Frames of one sequence come together, for one group of images after the other.
    """
    begun: deque[tuple[tuple[UnitPart, ...], int]] = deque()

    def rest(parts: tuple[UnitPart, ...], number: int) -> Iterator[Film]:
        groups = block.groups(parts[0].span, size_for)
        while number == 0 or not groups[number - 1].last:
            yield tuple(Batch(part, block, groups[number]) for part in parts)
            number += 1
            if not in_order and not groups.ready(number):
                begun.append((parts, number))
                return

    for parts in in_films(unit.parts):
        yield from rest(parts, 0)
        while begun and block.groups(begun[0][0][0].span, size_for).ready(begun[0][1]):
            yield from rest(*begun.popleft())
    while begun:
        yield from rest(*begun.popleft())


def _with_next(units: Iterable[Unit]) -> Iterator[tuple[Unit, Unit | None]]:
    rest = iter(units)
    unit = next(rest, None)
    while unit is not None:
        then = next(rest, None)
        yield unit, then
        unit = then


def _at(values: NDArray[Any], rows: tuple[int, ...]) -> NDArray[Any]:
    """Some rows of an array, which are neighbors unless an image between them cannot be read."""
    if are_neighbors(rows):
        return values[rows[0] : rows[-1] + 1]
    return values[list(rows)]


def _model(part: UnitPart, number: int) -> int:
    """The model of a work, by its place in the job."""
    return next(model for work, model in part.works if work == number)


_NO_SCORES = score_logits(np.empty((0, 1), np.float32), np.empty(0, np.int64))


def _nothing() -> BatchAnswer:
    return _NO_SCORES, None

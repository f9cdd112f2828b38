"""Models × conditions × images, on one machine.

Images go by in blocks. A block is decoded once; under each condition it is corrupted batch by batch in
threads or on the models' device, ahead of the models, and every model that has no answers yet sees the same
batch. The answers of a block are kept when its last batch is done: what a kill costs is at most one block of
one condition.

Blocks and batches start at fixed places in the data set, so that a model that rounds differently in
batches of another size still gives the same answers after a restart.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beaufort.arrays import Bytes
from beaufort.conditions import Condition
from beaufort.datasets import Dataset, Problem, open_dataset
from beaufort.errors import BeaufortError, OptionError
from beaufort.evaluation.engines import Batch, Threads, ask, choose_engine
from beaufort.evaluation.plan import Plan, Range, Setup, Work, make_plan
from beaufort.evaluation.precision import Stop, run_until
from beaufort.evaluation.provenance import provenance
from beaufort.models import Model, load_model
from beaufort.store import FileStore, Listing, StoreError, predictions, summarize, unanswered
from beaufort.suites import Step, Suite, get_suite

__all__ = ["BLOCK", "Evaluation", "Progress", "Result", "cost", "evaluate", "plan"]

BLOCK = 1000
"""Images a block: one file of the store for each cell."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    done: int
    total: int
    """Answers, over all models and conditions."""
    model: str
    condition: str
    accuracy: float | None
    """Of this model under this condition, so far."""


@dataclass(frozen=True)
class Result:
    """One model under one condition."""

    model: str
    condition: str
    images: int
    correct: int
    unread: int
    reused: bool
    """Whether the store had it all."""
    fingerprint: str

    @property
    def accuracy(self) -> float:
        """Share of the images that were read whose most probable class is the true one."""
        return self.correct / self.images if self.images else float("nan")


@dataclass(frozen=True)
class Evaluation:
    """What came of a run."""

    results: tuple[Result, ...]
    problems: tuple[Problem, ...]
    """Images that could not be read."""
    stop: Stop | None = None
    """Where a run with a precision ended."""
    notes: tuple[str, ...] = ()
    """What else a reader should know: corruptions that the device could not make, say."""


def plan(
    models: Sequence[str | Model],
    suite: str | Suite | Sequence[Condition],
    data: str | Path | Dataset,
    store: str | Path | FileStore,
    *,
    limit: int | None = None,
    seed: int = 0,
    strict: bool = False,
) -> Plan:
    """What `evaluate` would do with the same arguments."""
    loaded = [load_model(model) if isinstance(model, str) else model for model in models]
    if not loaded:
        raise OptionError("no model came; give at least one")
    dataset = data if isinstance(data, Dataset) else open_dataset(str(data), strict=strict)
    if isinstance(suite, str):
        suite = get_suite(suite)
    conditions, prepare, scale = _conditions(suite, dataset)
    count = len(dataset) if limit is None else min(limit, len(dataset))
    if count < 1:
        raise OptionError(
            f"there is no image to evaluate on: {dataset.name} has {len(dataset)}, the limit is {limit}"
        )
    named = suite if isinstance(suite, Suite) else None
    setup = Setup(dataset, count, prepare, scale, seed, named)
    return make_plan(loaded, conditions, setup, store if isinstance(store, FileStore) else FileStore(store))


def _conditions(
    suite: Suite | Sequence[Condition], dataset: Dataset
) -> tuple[list[Condition], tuple[Step, ...], str]:
    if isinstance(suite, Suite):
        return suite.conditions(dataset.name), suite.prepare, suite.scale
    return list(suite), (), "auto"


def evaluate(
    models: Sequence[str | Model],
    suite: str | Suite | Sequence[Condition],
    data: str | Path | Dataset,
    store: str | Path | FileStore,
    *,
    limit: int | None = None,
    jobs: int | None = None,
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
        store: a folder or URL that keeps the answers.
        limit: only the first so many images.
        jobs: threads that decode and corrupt; one less than there are processors, at least 1, if None.
        batch_size: images that a model sees at once; by their size if None.
        seed: of everything that is random.
        keep_logits: keep all logits, not only the five best classes.
        strict: stop at the first image that cannot be read, instead of telling of it at the end.
        precision: stop when every headline interval is narrower than ± this share (0.01: one point); the
            images then come in a random order, seeded with `seed`.
        baseline: what mCE divides by when a precision is asked for; the suite's own if None.
        progress: called after every batch.
    """
    kept = store if isinstance(store, FileStore) else FileStore(store)
    if precision is not None:
        data = data if isinstance(data, Dataset) else open_dataset(str(data), strict=strict)
        data = data if data.order is not None else data.shuffled(seed)
    planned = plan(models, suite, data, kept, limit=limit, seed=seed, strict=strict)
    run = _Run(planned, kept, jobs or max(1, (os.cpu_count() or 2) - 1), batch_size, keep_logits, progress)
    notes = []
    if planned.setup.suite is not None:
        try:
            kept.write_run(*_record(planned, planned.setup.suite, run.origin))
        except StoreError as error:
            if planned.images:
                raise  # its answers could not be kept either
            notes.append(f"the store has all answers, and cannot be written to ({error})")
    stop = None
    if precision is None:
        run.blocks(0, planned.setup.count)
    else:
        stop = run_until(planned, kept, precision, baseline, run.blocks)
    listing = kept.listing()
    if scattered := [w.cell for w in planned.works if len(listing.get(w.cell.fingerprint, ())) > 1]:
        try:
            for cell in scattered:
                kept.gather(cell, listing)
        except StoreError as error:
            notes.append(f"files could not be put together, which changes no result ({error})")
        listing = kept.listing()
    count = planned.setup.count if stop is None else stop.images
    results = (_result(work, count, kept, listing) for work in planned.works)
    return Evaluation(tuple(results), tuple(run.problems), stop, (*run.engine.notes, *notes))


def _record(planned: Plan, suite: Suite, origin: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a run is asked for, and what else a reader of its results wants to know."""
    setup = planned.setup
    models = {work.cell.model["name"]: work.cell.model for work in planned.works}
    facts = {
        "suite": suite.as_dict(),
        "data": setup.data,
        "seed": setup.seed,
        "models": list(models.values()),
    }
    outputs = {work.model.spec.classes for work in planned.works}
    notes: dict[str, Any] = {"images": setup.count, "classes": list(setup.dataset.classes)}
    if len(outputs) == 1 and None not in outputs:  # models that choose from different classes say nothing
        notes["outputs"] = outputs.pop()
    return facts, {**notes, **origin}


def _result(work: Work, count: int, store: FileStore, listing: Listing) -> Result:
    table = store.read(work.cell, listing).slice(0, count)
    if len(table) < count or table["place"][-1].as_py() != count - 1:
        raise StoreError(
            f"{store.location} lacks answers of {work.model.spec.name} under {work.condition} that were kept "
            "in it: it was changed while the run was under way; the same command makes what is missing"
        )
    sums = summarize(table)
    images, correct, unread = (int(sums[key]) for key in ("rows", "correct", "unread"))
    name, condition = work.model.spec.name, str(work.condition)
    reused = not _inside(work.gaps, 0, count)
    return Result(name, condition, images, correct, unread, reused, work.cell.fingerprint)


class _Run:
    """A run under way."""

    def __init__(
        self,
        plan: Plan,
        store: FileStore,
        jobs: int,
        batch_size: int | None,
        keep_logits: bool,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.plan = plan
        self.setup = plan.setup
        self.store = store
        self.jobs = jobs
        self.batch_size = batch_size
        self.keep_logits = keep_logits
        self.progress = progress
        self.problems: list[Problem] = []
        self.done = 0
        models = {work.model.spec.name: work.model for work in plan.works}
        self.engine = choose_engine(list(models.values()), plan.setup, jobs)
        self.origin = provenance()
        self.right: dict[str, list[int]] = {}

    def blocks(self, first: int, behind: int) -> None:
        """Show the images from the first to the one before `behind`."""
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                edges = range(first - first % BLOCK, behind, BLOCK)
                spans = [(max(edge, first), min(edge + BLOCK, behind)) for edge in edges]
                spans = [span for span in spans if any(_inside(w.gaps, *span) for w in self.plan.works)]
                coming: deque[Iterator[Bytes | Problem]] = deque()
                for i, span in enumerate(spans):
                    for other in spans[i + len(coming) : i + 1 + self.engine.blocks_ahead]:
                        coming.append(pool.map(self.decode, range(*other)))
                    self.block(pool, *span, coming.popleft())
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def block(
        self, pool: ThreadPoolExecutor, start: int, stop: int, decoded: Iterator[Bytes | Problem]
    ) -> None:
        images: dict[int, Bytes] = {}
        for place, image in zip(range(start, stop), decoded, strict=True):
            if isinstance(image, Problem):
                self.problems.append(image)
            else:
                images[place] = image
        wanted: dict[tuple[Condition, Range], list[Work]] = {}
        for work in self.plan.works:
            for span in _inside(work.gaps, start, stop):
                wanted.setdefault((work.condition, span), []).append(work)
        answers: dict[str, list[NDArray[np.float32]]] = {}
        for work, batch, logits in self.answered(pool, wanted, images):
            if batch.rows:
                answers.setdefault(work.cell.fingerprint, []).append(logits())
                self.count(work, batch.rows, answers[work.cell.fingerprint][-1])
            if batch.last:
                self.keep(work, batch.span, images, answers.pop(work.cell.fingerprint, []))

    def answered(
        self,
        pool: ThreadPoolExecutor,
        wanted: dict[tuple[Condition, Range], list[Work]],
        images: dict[int, Bytes],
    ) -> Iterator[tuple[Work, Batch, Callable[[], NDArray[np.float32]]]]:
        """Every batch for every work that wants it, with what waits for its logits."""
        waiting: deque[tuple[Work, Batch, Callable[[], NDArray[np.float32]]]] = deque()
        for batch, shown in self.engine.shown(pool, self.batches(wanted, images), images):
            for work in wanted[batch.condition, batch.span]:
                waiting.append((work, batch, ask(work.model, shown) if batch.rows else _no_logits))
                if len(waiting) > self.engine.lag:
                    yield waiting.popleft()
        yield from waiting

    def decode(self, place: int) -> Bytes | Problem:
        try:
            return self.setup.image(self.setup.dataset[place])
        except BeaufortError as error:
            if self.setup.dataset.strict:
                raise
            return Problem(self.setup.dataset.ids[place], str(error))

    def batches(
        self, wanted: dict[tuple[Condition, Range], list[Work]], images: dict[int, Bytes]
    ) -> Iterator[Batch]:
        for condition, span in wanted:
            groups = list(_groups(range(*span), images, self.batch_size, self.engine.values))
            for i, rows in enumerate(groups or [()]):
                yield Batch(condition, span, rows, i >= len(groups) - 1)

    def count(self, work: Work, rows: tuple[int, ...], logits: NDArray[np.float32]) -> None:
        self.done += len(rows)
        if self.progress is None:
            return
        tally = self.right.setdefault(work.cell.fingerprint, [0, 0])
        tally[0] += int((logits.argmax(axis=1) == self.setup.dataset.labels[list(rows)]).sum())
        tally[1] += len(rows)
        accuracy = tally[0] / tally[1]
        name, condition = work.model.spec.name, str(work.condition)
        self.progress(Progress(self.done, self.plan.images, name, condition, accuracy))

    def keep(
        self, work: Work, span: Range, images: dict[int, Bytes], logits: list[NDArray[np.float32]]
    ) -> None:
        """Write one file: the answers to a range of images, with empty rows for those that were not read."""
        dataset = self.setup.dataset
        places = range(*span)
        read = [place for place in places if place in images]
        answers = np.concatenate(logits) if logits else np.empty((0, 1), np.float32)
        table = predictions(
            [dataset.ids[i] for i in read], dataset.labels[read], answers, keep_logits=self.keep_logits
        )
        if len(read) < len(places):
            lost = [place for place in places if place not in images]
            empty = unanswered([dataset.ids[i] for i in lost], dataset.labels[lost], table.schema)
            order = np.argsort([*read, *lost], kind="stable")
            table = pa.concat_tables([table, empty]).take(order)
        self.store.write(
            work.cell, span[0], table, {**self.origin, "engine": self.engine.used(work.condition)}
        )


def _no_logits() -> NDArray[np.float32]:
    return np.empty((0, 0), np.float32)


def _inside(gaps: Sequence[Range], start: int, stop: int) -> list[Range]:
    """The parts of some ranges that lie in another."""
    clipped = ((max(a, start), min(b, stop)) for a, b in gaps)
    return [(a, b) for a, b in clipped if a < b]


def _groups(
    places: range, images: dict[int, Bytes], size: int | None, values: int
) -> Iterator[tuple[int, ...]]:
    """Places in batches of images of one shape."""
    group: list[int] = []
    most = 0
    for place in places:
        if place not in images:
            continue
        image = images[place]
        if group and (len(group) >= most or images[group[0]].shape != image.shape):
            yield tuple(group)
            group = []
        if not group:
            most = size or _batch_size(image, values)
        group.append(place)
    if group:
        yield tuple(group)


def _batch_size(image: Bytes, values: int) -> int:
    """A power of two from 1 to 512 that keeps a batch below so many values."""
    return 1 << max(0, min(9, (values // image.size).bit_length() - 1))


def cost(planned: Plan) -> float:
    """About how many seconds the rest of a plan takes here: one batch of each model, timed."""
    setup = planned.setup
    todo: dict[str, list[Work]] = {}
    for work in planned.works:
        if work.gaps:
            todo.setdefault(work.model.spec.name, []).append(work)
    if not todo:
        return 0.0
    first = setup.image(setup.dataset[0])
    batch = np.repeat(first[None], min(_batch_size(first, Threads.values), setup.count), axis=0)
    seconds = 0.0
    for works in todo.values():
        model = works[0].model
        model(batch)  # the first time is not like the others
        start = time.perf_counter()
        model(batch)
        seconds += (time.perf_counter() - start) / len(batch) * sum(work.images for work in works)
    return seconds

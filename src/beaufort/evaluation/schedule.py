"""A run under way: what is missing goes to an engine in units, and what comes back goes to the store."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from beaufort.data import Problem
from beaufort.evaluation.blocks import BLOCK, UnitPart, in_films
from beaufort.evaluation.engines import Engine, NodeSpeed
from beaufort.evaluation.keeper import Keeper
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.planning import Facts, Plan, Range, Work
from beaufort.evaluation.work import Answered, Failed, Made, Message, Note, Unit, Written
from beaufort.suites.conditions import Condition

_UNITS_A_PROCESS = 4
"""At least so many, if conditions allow: who is done early takes more of them."""
_CONDITIONS = 8
"""Conditions of a unit for one model, at most."""
_UNITS = 64
"""Units of a job whose units are for one model, at least, if conditions allow: with few, workers that are
done early would wait for those that are not."""

_READ_NOW = (
    "it can be shown now, but could not when it was evaluated, and has no answer; a new store asks for one"
)


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
    nodes: Mapping[str, NodeSpeed] = field(default_factory=dict)
    """The machines of a cluster, by name."""


class Run:
    """A run under way: units go to an engine, and what comes back goes to the store."""

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        keeper: Keeper,
        models: Sequence[LazyModel],
        origin: dict[str, Any],
        processes: int,
        progress: Callable[[Progress], None] | None,
        record: Callable[[], tuple[Facts, Facts]] | None,
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.keeper = keeper
        self.works = [(number, work) for number, work in enumerate(plan.works) if work.gaps]
        self.numbers = {model: number for number, model in enumerate(models)}
        self.origin = origin
        self.processes = processes
        self.progress = progress
        self.record = record
        self.problems: set[Problem] = set()
        self.notes: dict[str, None] = {}
        self.failures: list[Failed] = []
        self.done = 0
        self.total = plan.images  # once: a sum over all works, wanted after every batch
        self.right: dict[int, tuple[int, int]] = {}

    def show(self, first: int = 0, behind: int | None = None) -> None:
        """Show the images from the first to the one before `behind`, and have the answers stored."""
        ends = [setup.count if behind is None else behind for setup in self.plan.setups]
        with closing(self.engine.work(self.queues(first, ends))) as messages:
            for message in messages:
                self.take(message)
        self.keeper.flush()

    def take(self, message: Message) -> None:
        match message:
            case Made(work, start, table, backend):
                if self.record is not None:  # not sooner: the digest in it would delay the first batch
                    self.keeper.record(self.record)
                self.keeper.write(work, start, table, {**self.origin, "backend": backend})
            case Written(work, piece, counts):
                self.keeper.stored(work, piece, counts)
            case Failed():
                self.failures.append(message)
            case Answered():
                self.count(message)
            case Note(text):
                self.notes[text] = None
            case Problem():
                self.problems.add(message)

    def queues(self, first: int, ends: Sequence[int]) -> Iterator[Iterator[Unit]]:
        """The units of each model, or all units in one queue, as the engine wants them."""
        if not self.engine.one_model:
            yield (unit for setup, end in enumerate(ends) for unit in self.units(setup, first, end))
            return
        mine: dict[int, list[tuple[int, Work]]] = {}
        for number, work in self.works:
            mine.setdefault(self.numbers[work.model], []).append((number, work))
        most = _conditions_each(mine.values(), first, ends)
        yield from (self.units_of(works, first, ends, most) for works in mine.values())

    def units(self, setup: int, first: int, behind: int) -> Iterator[Unit]:
        """A block each; where blocks are few, processes share the conditions of one."""
        works = [(number, work) for number, work in self.works if work.place == setup]
        blocks = [(span, parts) for span in _spans(first, behind) if (parts := self.parts(works, *span))]
        wanted = _UNITS_A_PROCESS * self.processes if self.processes > 1 else 1
        shares = math.ceil(wanted / max(1, len(blocks)))
        for span, parts in blocks:
            yield from _in_units(setup, span, parts, math.ceil(len(parts) / shares))

    def units_of(
        self, works: Iterable[tuple[int, Work]], first: int, ends: Sequence[int], most: int
    ) -> Iterator[Unit]:
        """Units of one model: some conditions of a block each."""
        by_setup: dict[int, list[tuple[int, Work]]] = {}
        for number, work in works:
            by_setup.setdefault(work.place, []).append((number, work))
        for setup, mine in by_setup.items():
            for span in _spans(first, ends[setup]):
                yield from _in_units(setup, span, self.parts(mine, *span), most)

    def parts(self, works: Iterable[tuple[int, Work]], start: int, stop: int) -> list[UnitPart]:
        """What is missing of a block, for all models together where they lack the same."""
        wanted: dict[tuple[Condition, Range], list[tuple[int, int]]] = {}
        for number, work in works:
            for span in inside(work.gaps, start, stop):
                wanted.setdefault((work.condition, span), []).append((number, self.numbers[work.model]))
        return [UnitPart(condition, span, tuple(works)) for (condition, span), works in wanted.items()]

    def count(self, answered: Answered) -> None:
        self.done += answered.images
        if self.progress is None:
            return
        right, seen = self.right.get(answered.work, (0, 0))
        right, seen = self.right[answered.work] = right + answered.correct, seen + answered.labeled
        work = self.plan.works[answered.work]
        name, condition = work.model.spec.name, str(work.condition)
        accuracy = right / seen if seen else None
        at = Progress(self.done, self.total, name, condition, accuracy, self.engine.nodes)
        self.progress(at)

    def sorted_problems(self, unread: Collection[tuple[int, str]] = ()) -> tuple[Problem, ...]:
        """Each once, in the order of the data set.

        Args:
            unread: setups and ids of images that an earlier run could not read; they are looked at again to
                say why.
        """
        found = set(self.problems)
        told = {problem.id for problem in found}
        for number in {number for number, id in unread if id not in told}:
            setup = self.plan.setups[number]
            rows = {id: row for row, id in enumerate(setup.dataset.ids)}
            for id in (id for other, id in unread if other == number and id not in told):
                again = setup.pictures(rows[id])
                found.add(again if isinstance(again, Problem) else Problem(id, _READ_NOW))
        if not found:
            return ()
        ids = dict.fromkeys(id for setup in self.plan.setups for id in setup.dataset.ids)
        place = {id: place for place, id in enumerate(ids)}
        return tuple(sorted(found, key=lambda problem: place[problem.id]))


def _conditions_each(models: Iterable[Sequence[tuple[int, Work]]], first: int, ends: Sequence[int]) -> int:
    """Conditions of a unit, fewer where blocks are few."""
    conditions = Counter(work.place for works in models for _, work in works)
    blocks = sum(count * len(_spans(first, ends[place])) for place, count in conditions.items())
    return min(_CONDITIONS, max(1, blocks // _UNITS))


def _spans(first: int, behind: int) -> list[Range]:
    """The blocks of some images."""
    edges = range(first - first % BLOCK, behind, BLOCK)
    return [(max(edge, first), min(edge + BLOCK, behind)) for edge in edges]


def _in_units(setup: int, span: Range, parts: Sequence[UnitPart], most: int) -> Iterator[Unit]:
    """Some parts of a block in units of about so many parts; those that are made together stay together."""
    unit: tuple[UnitPart, ...] = ()
    for film in in_films(parts):
        if unit and len(unit) + len(film) > most:
            yield Unit(span, unit, setup)
            unit = ()
        unit += film
    if unit:
        yield Unit(span, unit, setup)


def inside(gaps: Sequence[Range], start: int, stop: float) -> list[Range]:
    """The parts of some ranges that lie in another."""
    clipped = ((max(a, start), int(min(b, stop))) for a, b in gaps)
    return [(a, b) for a, b in clipped if a < b]

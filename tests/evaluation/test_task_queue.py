"""Tasks on a cluster: each is assigned once, and again after the loss of a worker."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

from hypothesis import given
from hypothesis import strategies as st

from beaufort.evaluation.task_queue import AHEAD, TRIES, Assignment, TaskQueue
from beaufort.evaluation.tasks import Task, TaskFailure, TaskPart
from beaufort.suites.conditions import Condition

BLOCK = 1000


def queues(models: int, blocks: int, conditions: int, a_unit: int) -> list[list[Task]]:
    found = []
    for model in range(models):
        mine = []
        for block in range(blocks):
            span = (block * BLOCK, (block + 1) * BLOCK)
            parts = [
                TaskPart(Condition.parse(f"toys/fog@{1 + c % 5}"), span, ((model * conditions + c, model),))
                for c in range(conditions)
            ]
            mine += [Task(span, tuple(parts[i : i + a_unit])) for i in range(0, conditions, a_unit)]
        found.append(mine)
    return found


class Workers:
    """Workers that process tickets in order, and die on command."""

    def __init__(self, dispatch: TaskQueue, count: int) -> None:
        self.dispatch = dispatch
        self.names = list(range(count))
        self.hired = count
        self.held: dict[int, list[Assignment]] = {name: [] for name in self.names}
        self.stored: Counter[tuple[int, int]] = Counter()
        self.failed: list[TaskFailure] = []

    def offer(self) -> None:
        for name in self.names:
            while (ticket := self.dispatch.take(name)) is not None:
                self.held[name].append(ticket)

    def step(self, name: int) -> None:
        """One more part of the oldest ticket is stored."""
        if not self.held[name]:
            return
        ticket = self.held[name][0]
        for part in ticket.task.parts:
            for work, _ in part.cells:
                self.dispatch.stored(name, work, *part.span)
                self.stored[work, part.span[0]] += 1
        self.held[name].pop(0)
        self.dispatch.started(name, 1)

    def die(self, name: int) -> None:
        self.failed += self.dispatch.lost(name, "killed")
        self.held.pop(name)
        self.names.remove(name)
        self.names.append(self.hired)
        self.held[self.hired] = []
        self.hired += 1


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(0, 2**32),
)
def test_everything_is_stored_whoever_dies(
    models: int, blocks: int, conditions: int, a_unit: int, count: int, seed: int
) -> None:
    """After random kills, every part is stored, and only parts of dead workers are repeated."""
    rng = random.Random(seed)
    workers = Workers(TaskQueue(queues(models, blocks, conditions, a_unit)), count)
    kills = rng.randrange(4)
    for _ in range(10_000):
        workers.offer()
        if workers.dispatch.finished:
            break
        name = rng.choice(workers.names)
        if kills and rng.random() < 0.2 and not any(t.losses >= TRIES for t in workers.held[name]):
            workers.die(name)
            kills -= 1
        else:
            workers.step(name)
    assert workers.dispatch.finished
    wanted = {
        (m * conditions + c, b * BLOCK)
        for m in range(models)
        for b in range(blocks)
        for c in range(conditions)
    }
    assert set(workers.stored) == wanted
    assert not workers.failed
    assert set(workers.stored.values()) == {1}


def deaths_until_finished(workers: Workers, deadly: Callable[[Assignment], bool]) -> int:
    """Return the number of workers that die of deadly tickets until the run ends."""
    deaths = 0
    for _ in range(10_000):
        workers.offer()
        if workers.dispatch.finished:
            return deaths
        for name in list(workers.names):
            if any(map(deadly, workers.held[name][:1])):
                workers.die(name)
                deaths += 1
            else:
                workers.step(name)
    raise AssertionError("the work comes to no end")


def test_a_part_that_ends_its_workers_is_given_up_and_the_rest_is_done() -> None:
    deadly = (3, 0)  # the work and the block
    workers = Workers(TaskQueue(queues(1, 2, 6, 4)), 2)
    deaths = deaths_until_finished(
        workers, lambda ticket: deadly in {(w, p.span[0]) for p in ticket.task.parts for w, _ in p.cells}
    )
    (failed,) = workers.failed
    assert (failed.cells, failed.span, failed.reason) == ((3,), (0, BLOCK), "killed")
    assert deaths == 1 + TRIES
    assert set(workers.stored) == {(w, b * BLOCK) for w in range(6) for b in range(2)} - {deadly}


def test_a_suspect_is_tried_alone() -> None:
    dispatch = TaskQueue(queues(1, 1, 4, 2))
    assert dispatch.take("a") is not None
    assert not dispatch.lost("a", "killed")
    suspect = dispatch.take("b")
    assert suspect is not None
    assert suspect.losses == 1
    assert len(suspect.task.parts) == 1
    assert dispatch.take("b") is None


def test_a_model_that_always_ends_its_workers_is_given_up_as_a_whole() -> None:
    """Otherwise every part of it would cost as many workers as a deadly ticket."""
    workers = Workers(TaskQueue(queues(2, 40, 6, 4)), 2)
    deaths = deaths_until_finished(workers, lambda ticket: ticket.model == 1)
    assert set(workers.stored) == {(w, b * BLOCK) for w in range(6) for b in range(40)}
    failed = Counter((work, failure.span[0]) for failure in workers.failed for work in failure.cells)
    assert failed == {(w, b * BLOCK): 1 for w in range(6, 12) for b in range(40)}
    assert deaths < 60


def spans(tickets: list[Assignment]) -> set[tuple[int, int]]:
    return {ticket.task.span for ticket in tickets}


def test_a_worker_stays_with_its_block_and_its_model() -> None:
    workers = Workers(TaskQueue(queues(2, 3, 4, 1)), 2)
    seen: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
    while not workers.dispatch.finished:
        workers.offer()
        for name in (0, 1):
            if workers.held[name]:
                ticket = workers.held[name][0]
                seen[name].append((ticket.model, ticket.task.span[0] // BLOCK))
                workers.step(name)
    assert seen[0] == [(0, block) for block in range(3) for _ in range(4)]
    assert seen[1] == [(1, block) for block in range(3) for _ in range(4)]


def test_few_models_are_divided_by_block() -> None:
    workers = Workers(TaskQueue(queues(2, 4, 8, 1)), 6)
    workers.offer()
    models = [workers.held[name][0].model for name in range(6)]
    assert sorted(models) == [0, 0, 0, 1, 1, 1]
    assert all(len(spans(workers.held[name])) == 1 for name in range(6))
    assert len({(t.model, t.task.span) for held in workers.held.values() for t in held}) == 6


def test_enough_waits_at_a_worker() -> None:
    dispatch = TaskQueue(queues(1, 2, 6, 1))
    for _ in range(AHEAD):
        assert dispatch.take("a") is not None
    assert dispatch.take("a") is None
    dispatch.started("a", 1)
    assert dispatch.take("a") is not None
    assert dispatch.take("a") is None


def test_who_has_nothing_left_helps_others() -> None:
    dispatch = TaskQueue(queues(1, 1, 6, 1))
    assert dispatch.take("a") is not None
    assert dispatch.take("b") is not None


def test_units_are_created_on_demand() -> None:
    """The job may have millions: none is made long before its turn."""
    made = 0

    def endless() -> Iterator[Task]:
        nonlocal made
        for block in range(10**9):
            span = (block * BLOCK, (block + 1) * BLOCK)
            made += 1
            yield Task(span, (TaskPart(Condition.parse("toys"), span, ((0, 0),)),))

    dispatch = TaskQueue(endless() for _ in range(10**9))
    workers = 3
    for worker in range(workers):
        while dispatch.take(worker) is not None:
            pass
    assert made <= workers * (AHEAD + 2)

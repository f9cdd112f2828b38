"""The parts of `make torture`; each yields rows of the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from beaufort.store import FileStore, query
from tests.torture import files, options, service
from tests.torture.commands import COMMANDS, digits, suite
from tests.torture.crowd import crowd
from tests.torture.flips import Flips, Question, flip_bits
from tests.torture.gates import gate_beside_damage
from tests.torture.sigkill import Bench
from tests.torture.stores import cell, make_predictions, rows_in_python, rows_in_sql, write_old
from tests.torture.table import Row

__all__ = ["PARTS", "Task"]

_AT_ONCE = 2
"""Commands that are killed side by side: there are two cores."""


@dataclass(frozen=True)
class Task:
    """Extent and place of the tests."""

    folder: Path
    seed: int
    fraction: float
    until: float
    """On the clock of `time.monotonic`."""

    def some(self, whole: int) -> int:
        """Return the fraction of a count, at least 1."""
        return max(1, round(self.fraction * whole))

    def row(self, what: str) -> Row:
        return Row(what, self.until)


def kills_at_every_step(task: Task) -> Iterator[Row]:
    """Kill each command before each of its steps, or with a smaller fraction before some of them."""
    stride = max(1, round(1 / task.fraction))
    names = [name for name, command in COMMANDS.items() if command.steps]
    return _killing(task, "at a step", names, lambda bench, row: bench.every_step(row, stride=stride))


def kills_at_random(task: Task) -> Iterator[Row]:
    """Kill each command at random times."""
    count = task.some(25)
    return _killing(
        task, "at random", list(COMMANDS), lambda bench, row: bench.at_random(row, count, seed=task.seed)
    )


def _killing(task: Task, when: str, names: list[str], kill: Callable[[Bench, Row], None]) -> Iterator[Row]:
    def one(name: str, left: int) -> Row:
        now = time.monotonic()
        row = Row(f"`{name}` killed {when}, then resumed", now + (task.until - now) * min(1, _AT_ONCE / left))
        with Bench(name, task.folder / f"{name} {when}") as bench:
            kill(bench, row)
        return row.end()

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(one, names, range(len(names), 0, -1))


def bits_of_made_stores(task: Task) -> Iterator[Row]:
    """Flip bits in stores of both formats: each query returns the right result or names the file."""
    for old, case in ((False, "this format"), (True, "the first format")):
        row, root = task.row(f"bit flipped in a store of {case}"), task.folder / f"bits {old}"
        store = FileStore(root)
        for start in (0, 30):
            if old:
                write_old(root, cell(), start, make_predictions(start, start + 30))
            else:
                store.write(cell(), start, make_predictions(start, start + 30), {"host": "here"})
        with mock.patch("beaufort.store._index._LEAST_NEW_FOOTERS", 1):
            query(store, "select 1 from cells")
            questions: dict[str, Question] = {"python": rows_in_python, "sql": rows_in_sql}
            found = flip_bits(root, questions, task.some(100), seed=task.seed, has_time=row.has_time)
        yield _of_flips(row, found, case, seen=not old)


def bits_then_a_run(task: Task) -> Iterator[Row]:
    """Flip bits in the store of a run: each query is right or names the file, and `run` repairs it."""
    from beaufort.results import evaluate

    row, root = task.row("bit flipped, then `run`"), task.folder / "healed"
    digits(root / "digits")
    suite(root / "small.yaml")
    fill = partial(
        evaluate, ["demo:digits"], str(root / "small.yaml"), str(root / "digits"), str(root / "store")
    )
    fill()
    questions: dict[str, Any] = {"python": rows_in_python, "sql": rows_in_sql, "runs": _runs}
    found = flip_bits(
        root / "store", questions, task.some(60), seed=task.seed, heal=fill, has_time=row.has_time
    )
    yield _of_flips(row, found, "of a run", seen=True)


def _runs(store: FileStore) -> list[Any]:
    """Return the settings of the stored runs."""
    return [(record["suite"], record["data"], record["seed"], record["models"]) for record in store.runs()]


def _of_flips(row: Row, found: Flips, case: str, *, seen: bool) -> Row:
    row.count = found.tried
    for wrong in found.wrong:
        row.loss(f"{case}: {wrong}")
    for unseen in found.unseen if seen else ():  # a file of the first format has no digest
        row.loss(f"{case}: {unseen}: `results verify` does not find it")
    return row.end()


def gates(task: Task) -> Iterator[Row]:
    """Check the exit codes of a gate on damaged stores."""
    row = task.row("`gate` on a damaged store")
    gate_beside_damage(row, task.folder / "gate", task.some(240), seed=task.seed)
    yield row.end()


def mutated_files(task: Task) -> Iterator[Row]:
    """Read mutated images, archives, arrays, lists, suites and models."""
    row, most, turn = task.row("mutated file"), task.some(20_000), 0
    while row.count < most and row.has_time():
        tally = files.torture_files(min(500, most - row.count), seed=task.seed + turn)
        row.count, turn = row.count + tally.files, turn + 1
        for finding in tally.findings:
            row.uncaught(finding)
    yield row.end()


def hostile_service(task: Task) -> Iterator[Row]:
    """Use a hostile service, and invalid options of services and models."""
    asking: dict[str, Callable[[], service.Outcome]] = {
        "request to a hostile service": service.request,
        "invalid address or option of a service": service.request_with,
        "invalid option of a model": options.load_with,
    }
    for what, call in asking.items():
        row = task.row(what)
        outcome = call()
        row.count = outcome.requests
        for finding in outcome.findings:
            row.uncaught(finding)
        yield row.end()


def crowds(task: Task) -> Iterator[Row]:
    """Write, read and repair one store in several processes."""
    for writers in (2, 4, 8):
        row = task.row(
            f"operation of {writers} writers, {writers // 2} readers and `results verify --repair` on one "
            "store"
        )
        root = task.folder / f"crowd {writers}"
        found = crowd(root, seconds=max(2.0, 20 * task.fraction), writers=writers, readers=writers // 2)
        row.count = found.written + found.gathered + found.read + found.requests + found.collected
        for wrong in found.wrong:
            report = row.double if "twice" in wrong else row.loss if "row" in wrong else row.uncaught
            report(f"{writers} writers: {wrong[-1500:]}")
        store = FileStore(root)
        store.collect()
        for finding in store.verify():
            row.loss(f"{writers} writers, after the repair: {finding}")
        yield row.end()


PARTS: dict[str, tuple[Callable[[Task], Iterator[Row]], float]] = {
    "steps": (kills_at_every_step, 7),
    "random": (kills_at_random, 5),
    "bits": (bits_of_made_stores, 1.5),
    "heal": (bits_then_a_run, 1.5),
    "gate": (gates, 1),
    "files": (mutated_files, 2),
    "service": (hostile_service, 0.5),
    "crowd": (crowds, 1.5),
}
"""Each with the minutes it may take of twenty."""

"""Work in tasks that are done or not: each makes one file, and what is there is not made again."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from beaufort._core.errors import BeaufortError


class LostProcessError(BeaufortError, RuntimeError):
    """A process that was ended while it had tasks to do."""


@dataclass(frozen=True)
class Task:
    """One piece of work, as plain values, so that another process can do it."""

    name: str
    file: str
    """What is there when it is done, below the output folder."""
    call: str
    """`module:function`, called with the output folder, the deadline and `options`; it gives False if it
    stopped at the deadline, and a text instead of True if there is something to be told about it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    serves: tuple[str, ...] = ()
    """The files that its own is for, if it is for nothing else: when they are there, it is not needed."""
    after: tuple[str, ...] | None = None
    """Files of tasks listed before it that it needs; None if it needs all phases before its own."""

    def is_done(self, folder: Path) -> bool:
        """Whether its file is there, or is not needed any more."""
        served = bool(self.serves) and all((folder / file).exists() for file in self.serves)
        return served or (folder / self.file).exists()

    def run(self, folder: Path, deadline: float | None) -> bool | str:
        """Do it; whether it is done now, or what is to be told about it then."""
        module, _, name = self.call.partition(":")
        done: bool | str = getattr(import_module(module), name)(folder, deadline, **self.options)
        return done


@dataclass(frozen=True)
class StudyOutcome:
    """How far it came."""

    done: int
    """Tasks made by this call."""
    there: int
    """Tasks that were there before."""
    left: int
    """Tasks still to be made."""

    @property
    def finished(self) -> bool:
        return self.left == 0


def run_tasks(
    phases: Sequence[Sequence[Task]],
    folder: Path,
    *,
    jobs: int = 1,
    deadline: float | None = None,
    tell: Callable[[str], None] | None = None,
    at_end: Callable[[int], None] | None = None,
) -> StudyOutcome:
    """Make what is missing, in the order of the list, but each task only when what it needs is there.

    Args:
        phases: what to do; a task that does not say what it needs comes after all phases before its own.
        folder: where the files of the tasks are.
        jobs: processes that share the work.
        deadline: a time of `time.monotonic()` after which no task is begun, and at which trainings stop.
        tell: called with a line for each task.
        at_end: called with the number of tasks that were made, also if one of them fails.
    """
    before = _count_done(phases, folder)
    try:
        run = _run_here if jobs == 1 else partial(_run_in_processes, jobs=jobs)
        run(_missing(phases, folder), folder, deadline, tell or (lambda _: None))
    finally:
        there = _count_done(phases, folder)
        if at_end is not None:
            at_end(there - before)
    return StudyOutcome(there - before, before, sum(map(len, phases)) - there)


def _count_done(phases: Sequence[Sequence[Task]], folder: Path) -> int:
    return sum(task.is_done(folder) for phase in phases for task in phase)


def _processes(jobs: int) -> ProcessPoolExecutor:
    """Processes for all tasks, so that what they keep, such as corrupted images, is made once in each."""
    spawn = multiprocessing.get_context("spawn")  # CUDA survives no fork
    return ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, be it killed: nobody else would end it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Missing(NamedTuple):
    """A task that is to be made."""

    task: Task
    needs: set[str]
    """Files of other missing tasks that have to be there first."""


def _missing(phases: Sequence[Sequence[Task]], folder: Path) -> list[_Missing]:
    left = [[task for task in phase if not task.is_done(folder)] for phase in phases]
    every = {task.file for phase in left for task in phase}
    found: list[_Missing] = []
    for phase in left:
        before = {one.task.file for one in found}
        found += [_Missing(task, before if task.after is None else every & {*task.after}) for task in phase]
    return found


def _run_here(
    missing: Sequence[_Missing], folder: Path, deadline: float | None, say: Callable[[str], None]
) -> None:
    for task, _ in missing:
        if deadline is not None and time.monotonic() >= deadline:
            break
        made, seconds = _timed(task, folder, deadline)
        if made:
            say(_line(task, made, seconds))


def _run_in_processes(
    missing: Sequence[_Missing],
    folder: Path,
    deadline: float | None,
    say: Callable[[str], None],
    *,
    jobs: int,
) -> None:
    running: dict[Future[tuple[bool | str, float]], Task] = {}
    with _processes(jobs) as pool:
        try:
            _share(missing, running, pool, folder, deadline, say, jobs)
        except BrokenProcessPool:
            begun = ", ".join(task.name for task in running.values())
            raise LostProcessError(
                f"a process was ended from outside, as happens where memory is short (begun were: {begun}); "
                "the same command goes on, and fewer jobs need less memory"
            ) from None


def _share(
    missing: Sequence[_Missing],
    running: dict[Future[tuple[bool | str, float]], Task],
    pool: ProcessPoolExecutor,
    folder: Path,
    deadline: float | None,
    say: Callable[[str], None],
    jobs: int,
) -> None:
    """Let processes make what is missing; `running` has what they are at."""
    waiting, there = list(missing), set[str]()
    while True:
        if deadline is not None and time.monotonic() >= deadline:
            waiting.clear()
        ready = [one for one in waiting if one.needs <= there][: jobs - len(running)]
        for one in ready:
            waiting.remove(one)
            running[pool.submit(_timed, one.task, folder, deadline)] = one.task
        if not running:  # nothing is left, or only what needs a task that was not made
            return
        finished, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
        for future in finished:
            made, seconds = future.result()
            task = running.pop(future)
            if made:
                there.add(task.file)
                say(_line(task, made, seconds))


def _line(task: Task, made: bool | str, seconds: float) -> str:
    """What is told when a task is done."""
    return f"{task.name}: {seconds:.1f} s" + (f"; {made}" if isinstance(made, str) else "")


def _timed(task: Task, folder: Path, deadline: float | None) -> tuple[bool | str, float]:
    start = time.monotonic()
    return task.run(folder, deadline), time.monotonic() - start

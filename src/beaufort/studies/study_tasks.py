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
from importlib import import_module
from pathlib import Path
from typing import Any

from beaufort._core.errors import BeaufortError


class LostProcessError(BeaufortError, RuntimeError):
    """A process that was ended while it had tasks to do."""


@dataclass(frozen=True, eq=False)
class StudyTask:
    """One piece of work, which can be sent to another process."""

    name: str
    file: str
    """What is there when it is done, below the output folder."""
    call: str
    """`module:function`, called with the output folder, the deadline and `options`; it returns False if it
    stopped at the deadline, and True or a warning about the result if it is done."""
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
        """Do it; whether it is done now, or a warning about its result."""
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
    phases: Sequence[Sequence[StudyTask]],
    folder: Path,
    *,
    jobs: int = 1,
    deadline: float | None = None,
    tell: Callable[[str], None] | None = None,
    at_end: Callable[[int], None] | None = None,
) -> StudyOutcome:
    """Do the tasks that are missing, in the order of the list, but each only when what it needs is there.

    Args:
        phases: what to do; a task that does not say what it needs comes after all phases before its own.
        folder: where the files of the tasks are.
        jobs: processes that share the tasks.
        deadline: a time of `time.monotonic()` after which no task is begun, and at which training runs stop.
        tell: called with a line for each task.
        at_end: called with the number of tasks that were done, also if one of them fails.
    """

    def count_done() -> int:
        return sum(task.is_done(folder) for phase in phases for task in phase)

    before = count_done()
    missing = _missing(phases, folder)
    say = tell or (lambda _: None)
    try:
        if jobs == 1:
            for task in missing:
                if deadline is not None and time.monotonic() >= deadline:
                    break
                _report(task, _timed(task, folder, deadline), say)
        elif missing:
            _run_in_processes(missing, folder, deadline, say, jobs)
    finally:
        there = count_done()
        if at_end is not None:
            at_end(there - before)
    return StudyOutcome(there - before, before, sum(map(len, phases)) - there)


def _missing(phases: Sequence[Sequence[StudyTask]], folder: Path) -> dict[StudyTask, set[str]]:
    """Return the tasks to do, each with the files of other such tasks that have to be there first."""
    left = [[task for task in phase if not task.is_done(folder)] for phase in phases]
    every = {task.file for phase in left for task in phase}
    found: dict[StudyTask, set[str]] = {}
    for phase in left:
        before = {task.file for task in found}
        found |= {task: before if task.after is None else every & {*task.after} for task in phase}
    return found


def _run_in_processes(
    missing: dict[StudyTask, set[str]],
    folder: Path,
    deadline: float | None,
    say: Callable[[str], None],
    jobs: int,
) -> None:
    """Share tasks among processes, which stay, so that what they keep, as corrupted images, is made once."""
    waiting, there = dict(missing), set[str]()
    running: dict[Future[tuple[bool | str, float]], StudyTask] = {}
    spawn = multiprocessing.get_context("spawn")  # CUDA survives no fork
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_end_with_parent) as pool:
        try:
            while True:
                if deadline is not None and time.monotonic() >= deadline:
                    waiting.clear()
                ready = [task for task, needs in waiting.items() if needs <= there][: jobs - len(running)]
                for task in ready:
                    del waiting[task]
                    running[pool.submit(_timed, task, folder, deadline)] = task
                if not running:  # nothing is left, or only what needs a task that was not done
                    return
                for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    task = running.pop(future)
                    if _report(task, result, say):
                        there.add(task.file)
        except BrokenProcessPool:
            begun = ", ".join(task.name for task in running.values())
            raise LostProcessError(
                "a process was killed, as happens when memory runs out, while it did one of these tasks: "
                f"{begun}; the same command continues, and fewer jobs need less memory"
            ) from None


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _timed(task: StudyTask, folder: Path, deadline: float | None) -> tuple[bool | str, float]:
    start = time.monotonic()
    return task.run(folder, deadline), time.monotonic() - start


def _report(task: StudyTask, result: tuple[bool | str, float], say: Callable[[str], None]) -> bool:
    """Report a task that is done; whether it is."""
    made, seconds = result
    if made:
        say(f"{task.name}: {seconds:.1f} s" + (f"; {made}" if isinstance(made, str) else ""))
    return bool(made)

"""Tasks of a study: each writes one file, and a task whose file exists does not run again."""

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
from beaufort.studies.prediction_archive import has_predictions

Log = Callable[[str], None]


class LostProcessError(BeaufortError, RuntimeError):
    """A worker process was killed while it ran a task."""


@dataclass(frozen=True, eq=False)
class StudyTask:
    """One picklable piece of work."""

    name: str
    file: str
    """The file that exists when the task is done, relative to the output directory."""
    call: str
    """`module:function`, called with the output directory, the deadline and `options`. It returns False if it
    stopped at the deadline, otherwise True or a warning about the result."""
    options: Mapping[str, Any] = field(default_factory=dict)
    serves: tuple[str, ...] = ()
    """The files that need this one; once all of them exist, the task is skipped."""
    after: tuple[str, ...] | None = None
    """The files that it needs; by default those of all tasks of earlier phases."""

    def is_done(self, folder: Path) -> bool:
        served = bool(self.serves) and all(has_predictions(folder, file) for file in self.serves)
        return served or has_predictions(folder, self.file)


@dataclass(frozen=True)
class StudyOutcome:
    """Numbers of tasks: done by this call, done before, and left."""

    done: int
    there: int
    left: int

    @property
    def finished(self) -> bool:
        return self.left == 0


def run_tasks(
    phases: Sequence[Sequence[StudyTask]],
    folder: Path,
    *,
    jobs: int = 1,
    deadline: float | None = None,
    log: Log | None = None,
    on_end: Callable[[int], None] | None = None,
) -> StudyOutcome:
    """Run the tasks that are not done, in order; each waits for the files that it needs.

    Args:
        phases: the tasks; one without `after` waits for all phases before its own.
        folder: output directory.
        jobs: number of processes.
        deadline: time of `time.monotonic()` after which no task starts and training runs stop.
        log: called with a line for each finished task.
        on_end: called with the number of tasks that were done, also if one of them fails.
    """

    def count_done() -> int:
        return sum(task.is_done(folder) for phase in phases for task in phase)

    before = count_done()
    pending = _pending(phases, folder)
    try:
        if jobs == 1:
            for task in pending:
                if deadline is not None and time.monotonic() >= deadline:
                    break
                _report(task, _run(task, folder, deadline), log)
        elif pending:
            _run_in_processes(pending, folder, deadline, log, jobs)
    finally:
        after = count_done()
        if on_end is not None:
            on_end(after - before)
    return StudyOutcome(after - before, before, sum(map(len, phases)) - after)


def _pending(phases: Sequence[Sequence[StudyTask]], folder: Path) -> dict[StudyTask, set[str]]:
    """Return the tasks to run, each with the files of other such tasks that it waits for."""
    left = [[task for task in phase if not task.is_done(folder)] for phase in phases]
    every = {task.file for phase in left for task in phase}
    pending: dict[StudyTask, set[str]] = {}
    for phase in left:
        earlier = {task.file for task in pending}
        pending |= {task: earlier if task.after is None else every & {*task.after} for task in phase}
    return pending


def _run_in_processes(
    pending: dict[StudyTask, set[str]], folder: Path, deadline: float | None, log: Log | None, jobs: int
) -> None:
    """Share tasks among processes, which persist, so that cached images are corrupted once per process."""
    waiting, done = dict(pending), set[str]()
    running: dict[Future[tuple[bool | str, float]], StudyTask] = {}
    spawn = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_end_with_parent) as pool:
        try:
            while True:
                if deadline is not None and time.monotonic() >= deadline:
                    waiting.clear()
                ready = [task for task, needs in waiting.items() if needs <= done][: jobs - len(running)]
                for task in ready:
                    del waiting[task]
                    running[pool.submit(_run, task, folder, deadline)] = task
                if not running:  # nothing is left, or only what needs an unfinished task
                    return
                for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    task = running.pop(future)
                    if _report(task, result, log):
                        done.add(task.file)
        except BrokenProcessPool:
            names = ", ".join(task.name for task in running.values())
            raise LostProcessError(
                f"a worker process was killed, perhaps because memory ran out, during one of: {names}; "
                "run the same command again to resume, with fewer jobs if memory is short"
            ) from None


def _end_with_parent() -> None:
    """End this process with the one that started it, even if that was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(task: StudyTask, folder: Path, deadline: float | None) -> tuple[bool | str, float]:
    start = time.monotonic()
    module, _, name = task.call.partition(":")
    result: bool | str = getattr(import_module(module), name)(folder, deadline, **task.options)
    return result, time.monotonic() - start


def _report(task: StudyTask, result: tuple[bool | str, float], log: Log | None) -> bool:
    """Log a finished task; return whether it is finished."""
    made, seconds = result
    if made and log:
        log(f"{task.name}: {seconds:.1f} s" + (f"; {made}" if isinstance(made, str) else ""))
    return bool(made)

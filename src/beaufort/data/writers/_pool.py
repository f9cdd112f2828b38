"""Threads over a stream of tasks that may be far longer than memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 2
"""Tasks taken from the stream for each thread, under way or waiting."""


def run_bounded(
    work: Callable[[T], R], tasks: Iterable[T], collect: Callable[[R], None], *, jobs: int, stop: Event
) -> None:
    """Do `work` on each task in `jobs` threads; hand each result to `collect` in the caller's thread.

    The order of results is not that of tasks. When `stop` is set no further task is taken. An error, or
    an interruption, sets it, waits for what is under way, and goes on to the caller.
    """
    waiting: set[Future[R]] = set()

    def drain(most: int) -> None:
        nonlocal waiting
        while len(waiting) > most:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                collect(future.result())

    with _one_thread_in_opencv(), ThreadPoolExecutor(jobs) as pool:
        try:
            for task in tasks:
                if stop.is_set():
                    break
                waiting.add(pool.submit(work, task))
                drain(_AHEAD * jobs - 1)
            drain(0)
        except BaseException:
            stop.set()
            for future in waiting:
                future.cancel()
            raise


@contextlib.contextmanager
def _one_thread_in_opencv() -> Iterator[None]:
    """Keep OpenCV from starting threads of its own inside ours."""
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)

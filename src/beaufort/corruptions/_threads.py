"""A short piece of work on several threads, the caller's among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_threads(work: Callable[[T], None], items: Iterable[T], threads: int) -> None:
    """Do `work` on every item; the first error ends all threads after the item they are at, and is raised.

    A pool would start one thread more and wake them all through a queue, which a batch of a few
    milliseconds feels.
    """
    rest = iter(items)
    errors: list[BaseException] = []

    def go() -> None:
        for item in rest:
            if errors:
                return
            try:
                work(item)
            except BaseException as error:  # of another thread, or an interrupt of this one
                errors.append(error)

    others = [Thread(target=go) for _ in range(threads - 1)]
    for other in others:
        other.start()
    go()
    for other in others:
        other.join()
    if errors:
        raise errors[0]

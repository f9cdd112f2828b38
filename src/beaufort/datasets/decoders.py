"""Pictures decoded by processes of their own, beside a thread that feeds a device.

Threads that decode would take turns in the interpreter with that thread, hundreds of times a batch, and the
device would wait. The processes read a span of places and answer with pictures, through pipes; while they
start, or if one fails, the picture is decoded where it is asked for. They import nothing of the script that
started the run.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

from beaufort.arrays import Bytes
from beaufort.datasets._dataset import Problem

__all__ = ["Decoders", "serve"]

Pictures = Callable[[int], Bytes | Problem]
"""A picture by its place, or what is wrong with it."""

_MOST = 8
_WORTH_S = 0.001
"""A picture that takes less is not worth a process."""
_WORTH_IMAGES = 500
_CHILD = (
    "import sys, pickle; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from beaufort.datasets.decoders import serve; serve()"
)


class Decoders:
    """Some processes, or none where they are not worth it."""

    def __init__(self, pictures: Pictures, pictures_count: int, count: int) -> None:
        self._pictures = pictures
        self._pictures_count = pictures_count
        self._count = min(count, _MOST)
        self._idle: SimpleQueue[subprocess.Popen[bytes] | None] = SimpleQueue()
        self._started: list[subprocess.Popen[bytes]] = []
        self._working = 0
        """Processes that answer."""
        self._lock = Lock()
        self._closing = False

    def __enter__(self) -> Self:
        if self._pictures_count >= _WORTH_IMAGES and self._seconds() > _WORTH_S:
            self._start()  # at once: beside threads that decode it would take seconds
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        for process in self._started:
            process.kill()
        for process in self._started:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    assert pipe is not None
                    pipe.close()

    def decode(self, places: range) -> list[Bytes | Problem | None] | None:
        """What a process makes of some places, None for an error; None if no process can be asked now."""
        if not self._working:
            return None
        try:  # while some are still starting, nobody waits for those that are there
            process = self._idle.get(block=self._working == len(self._started))
        except Empty:
            return None
        if process is None:  # the last one has failed
            self._idle.put(None)
            return None
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump(places, process.stdin)
            process.stdin.flush()
            found: list[Bytes | Problem | None] = pickle.load(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            with self._lock:
                self._working -= 1
                if not self._working:
                    self._idle.put(None)
            return None
        self._idle.put(process)
        return found

    def _seconds(self) -> float:
        """How long a picture takes here, the second time."""
        self._pictures(0)
        start = time.perf_counter()
        self._pictures(0)
        return time.perf_counter() - start

    def _start(self) -> None:
        try:
            packed = pickle.dumps(sys.path) + pickle.dumps(self._pictures)
        except Exception:  # a data set of anyone's may refuse; it is decoded here then
            return
        with contextlib.suppress(OSError):
            for _ in range(self._count):
                self._started.append(
                    subprocess.Popen(
                        [sys.executable, "-c", _CHILD],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                    )
                )
        for process in self._started:
            Thread(target=self._greet, args=(process, packed), name="beaufort decoder", daemon=True).start()

    def _greet(self, process: Any, packed: bytes) -> None:
        """Tell a process what there is, and wait until it is there."""
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError, ValueError):
            process.stdin.write(packed)
            process.stdin.flush()
            if pickle.load(process.stdout) == "ready" and not self._closing:
                with self._lock:
                    self._working += 1
                self._idle.put(process)


def serve() -> None:
    """What a process does, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    pictures = pickle.load(asked)
    pickle.dump("ready", answers)
    answers.flush()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            found = [_portable(pictures, place) for place in pickle.load(asked)]
            pickle.dump(found, answers, protocol=pickle.HIGHEST_PROTOCOL)
            answers.flush()


def _portable(pictures: Pictures, place: int) -> Bytes | Problem | None:
    """A picture, a problem, or None for what is an error: it is met again where the run is."""
    try:
        return pictures(place)
    except Exception:
        return None

"""Pictures decoded by processes of their own, beside a thread that feeds a device.

Threads that decode would take turns in the interpreter with that thread, hundreds of times a batch, and the
device would wait. The processes read a span of places and answer with pictures, through sockets; while they
start, or if one fails, the picture is decoded where it is asked for. They import nothing of the script that
started the run.

To start is most of what a short run pays for them: imports and kernels take as long as some hundred pictures.
So one process loads them, and is then forked, once for each decoder. It has no threads at that time: it has
not read a picture of the data set yet, and libraries start theirs when they are used. The process of the run
is never forked, as it has threads and a device.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Protocol, Self

from PIL import Image

from beaufort.arrays import Bytes
from beaufort.datasets._dataset import Problem
from beaufort.datasets._decode import decode

__all__ = ["Decoders", "serve"]


class _Pictures(Protocol):
    """The pictures of a data set, made ready."""

    def __call__(self, place: int) -> Bytes | Problem:
        """A picture by its place, or what is wrong with it."""

    def ready(self, pixels: Bytes) -> Bytes:
        """A decoded picture, made ready."""


_MOST = 16
_WORTH_S = 0.001
"""A picture that takes less is not worth a process."""
_WORTH_IMAGES = 500
_CHILD = (
    "import sys, pickle; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from beaufort.datasets.decoders import serve; serve([*map(int, sys.argv[1:])])"
)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""No threads of libraries are started before the fork, and none are needed."""


class Decoders:
    """Some processes, or none where they are not worth it or cannot be forked."""

    def __init__(self, pictures: _Pictures, pictures_count: int, count: int) -> None:
        self._pictures = pictures
        self._pictures_count = pictures_count
        self._count = min(count, _MOST)
        self._first: subprocess.Popen[bytes] | None = None
        """The process that the others are forked from; it leads a group of them all."""
        self._greeting: Thread | None = None
        self._ends: list[io.BufferedRWPair] = []
        """Our end of the socket of each process."""
        self._idle: SimpleQueue[io.BufferedRWPair | None] = SimpleQueue()
        self._working = 0
        """Processes that answer."""
        self._lock = Lock()
        self._closing = False

    def __enter__(self) -> Self:
        if hasattr(os, "fork") and self._pictures_count >= _WORTH_IMAGES and self._seconds() > _WORTH_S:
            self._start()  # at once: beside threads that decode it would take seconds
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._first.pid, signal.SIGKILL)
            self._first.wait()
        if self._greeting is not None:
            self._greeting.join()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.close()

    def decode(self, places: range) -> list[Bytes | Problem | None] | None:
        """What a process makes of some places, None for an error; None if no process can be asked now."""
        if not self._working:
            return None
        try:  # while some are still starting, nobody waits for those that are there
            end = self._idle.get(block=self._working == len(self._ends))
        except Empty:
            return None
        if end is None:  # the last one has failed
            self._idle.put(None)
            return None
        try:
            pickle.dump(places, end)
            end.flush()
            found: list[Bytes | Problem | None] = pickle.load(end)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            with self._lock:
                self._working -= 1
                if not self._working:
                    self._idle.put(None)
            return None
        self._idle.put(end)
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
        theirs: list[socket.socket] = []
        with contextlib.suppress(OSError):
            for _ in range(self._count):
                ours, their = socket.socketpair()
                theirs.append(their)
                with ours:
                    self._ends.append(ours.makefile("rwb"))
            numbers = [their.fileno() for their in theirs]
            self._first = subprocess.Popen(
                [sys.executable, "-c", _CHILD, *map(str, numbers)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD},
                pass_fds=numbers,
                start_new_session=True,
            )
        for their in theirs:
            their.close()  # so that the end of a process is the end of its socket
        if self._first is not None:
            self._greeting = Thread(target=self._greet, args=(self._first, packed), name="beaufort decoders")
            self._greeting.start()

    def _greet(self, first: subprocess.Popen[bytes], packed: bytes) -> None:
        """Tell the first process what there is, and wait until all of them are there."""
        with contextlib.suppress(OSError, ValueError):
            assert first.stdin is not None
            with first.stdin as told:
                told.write(packed)
        for end in self._ends:
            with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError, ValueError):
                if pickle.load(end) == "ready" and not self._closing:
                    with self._lock:
                        self._working += 1
                    self._idle.put(end)


def serve(sockets: Sequence[int]) -> None:
    """What the first process does: get everything ready, fork one for each socket, and wait for their end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    pictures: _Pictures = pickle.load(sys.stdin.buffer)
    _load_kernels(pictures)
    for number in sockets:
        if not os.fork():
            try:
                for other in set(sockets) - {number}:
                    os.close(other)
                _answer(socket.socket(fileno=number), pictures)
            finally:
                os._exit(0)
    for number in sockets:
        os.close(number)
    for _ in sockets:
        os.wait()


def _load_kernels(pictures: _Pictures) -> None:
    """Decode a picture that is not of the data set, and make it ready."""
    drawn = io.BytesIO()
    Image.new("RGB", (80, 64)).save(drawn, "JPEG")
    with contextlib.suppress(Exception):  # what fails is met again with the first picture
        pictures.ready(decode(drawn.getvalue()))


def _answer(asked: socket.socket, pictures: _Pictures) -> None:
    """What each process does, until nobody asks any more."""
    with asked, asked.makefile("rwb") as file, contextlib.suppress(EOFError, OSError):
        pickle.dump("ready", file)
        file.flush()
        while True:
            found = [_portable(pictures, place) for place in pickle.load(file)]
            pickle.dump(found, file, protocol=pickle.HIGHEST_PROTOCOL)
            file.flush()


def _portable(pictures: _Pictures, place: int) -> Bytes | Problem | None:
    """A picture, a problem, or None for what is an error: it is met again where the run is."""
    try:
        return pictures(place)
    except Exception:
        return None

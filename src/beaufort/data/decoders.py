"""Images decoded by processes of their own, beside a thread that feeds a device.

Threads that decode would take turns in the interpreter with that thread, hundreds of times a batch, and the
device would wait. The processes read a span of places and answer with images, through sockets; while they
start, or if one fails, the image is decoded where it is asked for. They import nothing of the script that
started the run.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import socket
import time
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Self

from beaufort._core.arrays import Bytes
from beaufort.data._dataset import Problem
from beaufort.data._decoder_processes import ImageLoader, describe, fork_decoders

_MOST = 16
_WORTH_S = 0.001
"""An image that takes less is not worth a process."""
_WORTH_IMAGES = 500
_SOON_S = 0.1
"""How long processes are waited for that only have to be forked: many threads would hold them up."""


def should_use_decoders(loader: ImageLoader, count: int) -> bool:
    """Whether so many images are worth processes that decode them, judged by the first one."""
    if not hasattr(os, "fork") or count < _WORTH_IMAGES:
        return False
    loader(0)  # the first one takes longer than others
    start = time.perf_counter()
    loader(0)
    return time.perf_counter() - start > _WORTH_S


class Decoders:
    """Some processes, or none where they cannot be forked."""

    def __init__(self, loader: ImageLoader, count: int) -> None:
        self._loader = loader
        self._count = min(count, _MOST)
        self._greeting: Thread | None = None
        self._sockets: list[socket.socket] = []
        """Our ends: the first one for the leader of the processes, the others for one process each."""
        self._files: list[io.BufferedRWPair] = []
        """For each process what it is asked through."""
        self._idle: SimpleQueue[io.BufferedRWPair | None] = SimpleQueue()
        self._working = 0
        """Processes that answer."""
        self._expected = 0.0
        """When the first ones should be there, by `time.monotonic`."""
        self._lock = Lock()

    def __enter__(self) -> Self:
        self._start()  # at once: beside threads that decode it would take seconds
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._sockets:  # which ends the processes, and whoever waits for one
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        if self._greeting is not None:
            self._greeting.join()
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()
        for one in self._sockets:
            one.close()

    def decode(self, places: range) -> list[Bytes | Problem | None] | None:
        """What a process makes of some places, None for an error; None if no process can be asked now."""
        left = self._expected - time.monotonic()
        if not self._working and left <= 0:
            return None
        try:  # while some are still starting, nobody waits long for those that are there
            file = self._idle.get(timeout=None if self._working == len(self._files) else max(0, left))
        except Empty:
            return None
        if file is None:  # all have failed
            self._idle.put(None)
            return None
        try:
            pickle.dump(places, file)
            file.flush()
            found: list[Bytes | Problem | None] = pickle.load(file)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            with self._lock:
                self._working -= 1
                if not self._working:
                    self._idle.put(None)
            return None
        self._idle.put(file)
        return found

    def _start(self) -> None:
        try:
            packed = describe(self._loader)
        except Exception:  # a dataset of anyone's may refuse; it is decoded here then
            return
        theirs: list[socket.socket] = []
        try:
            for _ in range(1 + self._count):
                ours, their = socket.socketpair()
                self._sockets.append(ours)
                theirs.append(their)
            soon = fork_decoders(self._loader, theirs)
        except OSError:
            return
        finally:
            for their in theirs:
                their.close()  # so that the end of a process is the end of its socket
        self._files = [ours.makefile("rwb") for ours in self._sockets[1:]]
        self._expected = time.monotonic() + _SOON_S if soon else 0.0
        self._greeting = Thread(target=self._greet, args=(packed,), name="beaufort decoders")
        self._greeting.start()

    def _greet(self, packed: bytes) -> None:
        """Tell the leader what there is, and wait until all processes are there."""
        with contextlib.suppress(OSError):
            self._sockets[0].sendall(packed)
        for file in self._files:
            with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError, ValueError):
                if pickle.load(file) == "ready":
                    with self._lock:
                        self._working += 1
                    self._idle.put(file)
        if not self._working:
            self._expected = 0.0
            self._idle.put(None)  # for those that wait

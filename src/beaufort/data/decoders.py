"""Processes that decode images while a thread feeds a device.

Decoding threads would compete with that thread for the interpreter, and the device would wait. The
processes receive ranges of indices and return images through sockets. While they start, or if one fails,
images are decoded by the caller. They import nothing of the script that started the run.
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

_MAX_PROCESSES = 16
_MIN_DECODE_S = 0.001
"""Images that decode faster are not worth a process."""
_MIN_IMAGES = 500
_FORK_TIMEOUT_S = 0.1
"""How long to wait for processes that only need to be forked; decoding threads would delay them."""


def should_use_decoders(loader: ImageLoader, count: int) -> bool:
    """Return whether images should be decoded by processes, judged by their number and the first one."""
    if not hasattr(os, "fork") or count < _MIN_IMAGES:
        return False
    loader(0)  # the first call is slower
    start = time.perf_counter()
    loader(0)
    return time.perf_counter() - start > _MIN_DECODE_S


class Decoders:
    """A pool of processes; empty where they cannot be forked."""

    def __init__(self, loader: ImageLoader, count: int) -> None:
        self._loader = loader
        self._count = min(count, _MAX_PROCESSES)
        self._greeting: Thread | None = None
        self._sockets: list[socket.socket] = []
        """The first one is connected to the leader, the others to one decoder each."""
        self._files: list[io.BufferedRWPair] = []
        """Connections to the decoders."""
        self._idle: SimpleQueue[io.BufferedRWPair | None] = SimpleQueue()
        self._working = 0
        """Number of decoders that respond."""
        self._expected = 0.0
        """When the first decoders should be ready, by `time.monotonic`."""
        self._lock = Lock()

    def __enter__(self) -> Self:
        self._start()  # before other threads start: it would take seconds beside them
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._sockets:  # this ends the processes, and threads that wait for them
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        if self._greeting is not None:
            self._greeting.join()
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()
        for one in self._sockets:
            one.close()

    def decode(self, indices: range) -> list[Bytes | Problem | None] | None:
        """Return images from a process, with None for errors; return None if no process is available."""
        left = self._expected - time.monotonic()
        if not self._working and left <= 0:
            return None
        try:  # while some are starting, do not wait long for the others
            file = self._idle.get(timeout=None if self._working == len(self._files) else max(0, left))
        except Empty:
            return None
        if file is None:  # all decoders failed
            self._idle.put(None)
            return None
        try:
            pickle.dump(indices, file)
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
        except Exception:  # the dataset cannot be pickled; it is decoded here
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
                their.close()  # so that the socket closes with the process
        self._files = [ours.makefile("rwb") for ours in self._sockets[1:]]
        self._expected = time.monotonic() + _FORK_TIMEOUT_S if soon else 0.0
        self._greeting = Thread(target=self._greet, args=(packed,), name="beaufort decoders")
        self._greeting.start()

    def _greet(self, packed: bytes) -> None:
        """Send the images to the leader, and wait until all decoders are ready."""
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
            self._idle.put(None)  # for waiting threads

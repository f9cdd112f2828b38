"""The processes that decode images: what they do, and the one that they are forked from.

To import what is needed to decode takes as long as some hundred images. So one process does that, once for
all runs of the process that started it, and waits. For a run it is forked into a leader, which learns what
the images are and is forked into the decoders of the run:

    this process ── source ── leader of a run ── decoders, a socket each

Neither the source nor a leader has threads when it is forked: they have not read an image of a dataset yet,
and libraries start theirs when they are used. The process of a run is never forked, as it has threads and a
device. The source keeps nothing of a run, and modules of a dataset's own are imported by the leader.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort.data._dataset import Problem
from beaufort.data._files import decode
from beaufort.data.images import resize_crop

_CHILD = (
    "import sys; module, *sys.path[:] = sys.argv[1:]; "
    "from beaufort.data._decoder_processes import serve; serve(module)"
)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""No threads of libraries are started before a fork, and none are needed."""
_MOST_SOCKETS = 64
_BLOCKS_KEPT = 2
"""Blocks of memory, 16 MB each at most, that Pillow keeps for the next image in each process."""


class ImageLoader(Protocol):
    """The images of a dataset, made ready."""

    def __call__(self, place: int) -> Bytes | Problem:
        """An image by its place, or what is wrong with it."""

    def prepare(self, pixels: Bytes) -> Bytes:
        """A decoded image, made ready."""


class _Source:
    """The process that others are forked from, seen from the one that started it."""

    def __init__(self, module: str) -> None:
        self.started_by = os.getpid()
        self._asked = False
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _CHILD, module, *sys.path],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,  # an interrupt of the run is not for it
            )

    @property
    def usable(self) -> bool:
        """Whether it is there, and is ours: a process that was forked from this one has to start its own."""
        return self.started_by == os.getpid() and self.process.poll() is None

    def fork(self, sockets: Sequence[socket.socket]) -> bool:
        """Have a leader forked, with some sockets, and say whether others were before."""
        before, self._asked = self._asked, True
        socket.send_fds(self._socket, [b"fork"], [one.fileno() for one in sockets])
        return before

    def end(self) -> None:
        self._socket.close()
        if self.started_by == os.getpid():
            self.process.kill()
            self.process.wait()


_source: _Source | None = None
_lock = Lock()


def start_decoder_server(kind: type) -> _Source:
    """The process that decoders are forked from, started if there is none.

    Args:
        kind: of the images; its module is imported at the start.
    """
    global _source  # noqa: PLW0603 - one for all runs of this process
    with _lock:
        if _source is None or not _source.usable:
            _end_source()
            _source = _Source(kind.__module__)
        return _source


@atexit.register
def _end_source() -> None:
    if _source is not None:
        _source.end()


def fork_decoders(loader: ImageLoader, sockets: Sequence[socket.socket]) -> bool:
    """Have a leader forked, and a decoder for each socket but the first; an `OSError` if it is not possible.

    What comes back is whether they will be there soon: others were forked from the same source before.

    Args:
        loader: what is decoded. The leader waits to be told; only their kind matters here.
        sockets: the other end of the first one tells the leader what `describe` says, and ends all decoders
            when it is closed. The other end of each other one asks a decoder.
    """
    return start_decoder_server(type(loader)).fork(sockets)


def describe(loader: ImageLoader) -> bytes:
    """What a leader is told; an error of any kind if the images cannot be pickled."""
    return pickle.dumps((sys.path, Path.cwd(), dict(os.environ))) + pickle.dumps(loader)


def serve(module: str) -> None:
    """What the source does: import everything, and fork a leader whenever it is asked to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a leader ended
    with contextlib.suppress(Exception):  # what fails is met again when images come
        importlib.import_module(module)
        resize_crop(_drawn(), (40, 32))
    with socket.socket(fileno=0) as asked:
        while True:
            message, descriptors, _, _ = socket.recv_fds(asked, 16, _MOST_SOCKETS)
            if not message:
                return
            sockets = [socket.socket(fileno=number) for number in descriptors]
            if not os.fork():
                with _then_exit():
                    asked.close()
                    _lead(*sockets)
            for one in sockets:
                one.close()


def _lead(control: socket.socket, *ends: socket.socket) -> None:
    """What a leader does: learn what the images are, fork a decoder for each socket, and stop them."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with control.makefile("rb") as told:
        sys.path[:], folder, environment = pickle.load(told)
        os.chdir(folder)
        os.environ.update(environment | _ONE_THREAD)
        loader: ImageLoader = pickle.load(told)
    with contextlib.suppress(Exception):  # what fails is met again with the first image
        loader.prepare(_drawn())
    for end in ends:
        if not os.fork():
            with _then_exit():
                control.close()
                for other in ends:
                    if other is not end:
                        other.close()
                _answer(end, loader)
    for end in ends:
        end.close()
    control.recv(1)  # until the run is over
    os.killpg(0, signal.SIGKILL)


@contextlib.contextmanager
def _then_exit() -> Iterator[None]:
    """Leave a process that was forked, whatever happens, without what is to be done at the end of another."""
    try:
        yield
    finally:
        os._exit(0)


def _drawn() -> Bytes:
    """A decoded image that is not of any dataset."""
    drawn = io.BytesIO()
    Image.new("RGB", (80, 64)).save(drawn, "JPEG")
    return decode(drawn.getvalue())


def _answer(asked: socket.socket, loader: ImageLoader) -> None:
    """What each decoder does, until nobody asks any more."""
    allocator: Any = Image.core  # type: ignore[attr-defined]
    allocator.set_blocks_max(_BLOCKS_KEPT)  # to give memory back and get it anew takes longer
    with asked, asked.makefile("rwb") as file, contextlib.suppress(EOFError, OSError):
        pickle.dump("ready", file)
        file.flush()
        while True:
            found = [_portable(loader, place) for place in pickle.load(file)]
            pickle.dump(found, file, protocol=pickle.HIGHEST_PROTOCOL)
            file.flush()


def _portable(loader: ImageLoader, place: int) -> Bytes | Problem | None:
    """An image, a problem, or None for what is an error: it is met again where the run is."""
    try:
        return loader(place)
    except Exception:
        return None

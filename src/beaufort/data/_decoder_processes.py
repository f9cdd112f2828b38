"""The decoder processes, and the fork server that they come from.

Importing the libraries takes as long as decoding some hundred images. Therefore one fork server imports
them once for all runs of a process. For each run it forks a leader, which receives the images and forks the
decoders:

    this process ── fork server ── leader of a run ── decoders, with one socket each

Neither the fork server nor a leader has threads when it forks, because libraries start theirs on first use.
The process of the run never forks, as it has threads and a device. The fork server keeps no state of a run;
the leader imports the modules of a dataset.
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
from beaufort.data.images import decode_pixels, resize_crop

_CHILD = (
    "import sys; module, *sys.path[:] = sys.argv[1:]; "
    "from beaufort.data._decoder_processes import serve; serve(module)"
)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Libraries must not start threads before a fork."""
_MAX_SOCKETS = 64
_PILLOW_BLOCKS = 2
"""Number of memory blocks of up to 16 MB that Pillow keeps for the next image."""


class ImageLoader(Protocol):
    """Reads and prepares the images of a dataset."""

    def __call__(self, index: int) -> Bytes | Problem:
        """Return an image, or a problem."""

    def prepare(self, pixels: Bytes) -> Bytes:
        """Prepare a decoded image."""


class _ForkServer:
    """The fork server, as seen by the process that started it."""

    def __init__(self, module: str) -> None:
        self.started_by = os.getpid()
        self._used = False
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _CHILD, module, *sys.path],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,  # it ignores interrupts of the run
            )

    @property
    def usable(self) -> bool:
        """Whether it runs and belongs to this process; a forked process must start its own."""
        return self.started_by == os.getpid() and self.process.poll() is None

    def fork(self, sockets: Sequence[socket.socket]) -> bool:
        """Fork a leader with some sockets, and return whether it is not the first one."""
        before, self._used = self._used, True
        socket.send_fds(self._socket, [b"fork"], [one.fileno() for one in sockets])
        return before

    def end(self) -> None:
        self._socket.close()
        if self.started_by == os.getpid():
            self.process.kill()
            self.process.wait()


_server: _ForkServer | None = None
_lock = Lock()


def start_decoder_server(kind: type) -> _ForkServer:
    """Return the fork server; start it if necessary.

    Args:
        kind: class of the image loader, whose module the server imports.
    """
    global _server  # noqa: PLW0603 - one for all runs of this process
    with _lock:
        if _server is None or not _server.usable:
            _end_server()
            _server = _ForkServer(kind.__module__)
        return _server


@atexit.register
def _end_server() -> None:
    if _server is not None:
        _server.end()


def fork_decoders(loader: ImageLoader, sockets: Sequence[socket.socket]) -> bool:
    """Fork a leader, and a decoder for each socket but the first; raise an `OSError` if this is impossible.

    Return whether they will be ready soon, because the fork server has started.

    Args:
        loader: the image loader, of which only the class is used; the leader waits for the result of
            `describe`.
        sockets: through the first one the leader receives the loader; closing it ends all decoders. The
            others are connected to one decoder each.
    """
    return start_decoder_server(type(loader)).fork(sockets)


def describe(loader: ImageLoader) -> bytes:
    """Return what a leader receives; raise any error if the loader cannot be pickled."""
    return pickle.dumps((sys.path, Path.cwd(), dict(os.environ))) + pickle.dumps(loader)


def serve(module: str) -> None:
    """Run the fork server: import everything, and fork a leader on each request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # do not leave zombies
    with contextlib.suppress(Exception):  # errors recur with the first image
        importlib.import_module(module)
        resize_crop(_sample_image(), (40, 32))
    with socket.socket(fileno=0) as requests:
        while True:
            message, descriptors, _, _ = socket.recv_fds(requests, 16, _MAX_SOCKETS)
            if not message:
                return
            sockets = [socket.socket(fileno=number) for number in descriptors]
            if not os.fork():
                with _exit_afterwards():
                    requests.close()
                    _lead(*sockets)
            for one in sockets:
                one.close()


def _lead(control: socket.socket, *ends: socket.socket) -> None:
    """Run a leader: receive the loader, fork a decoder for each socket, and stop them in the end."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with control.makefile("rb") as received:
        sys.path[:], folder, environment = pickle.load(received)
        os.chdir(folder)
        os.environ.update(environment | _ONE_THREAD)
        loader: ImageLoader = pickle.load(received)
    with contextlib.suppress(Exception):  # errors recur with the first image
        loader.prepare(_sample_image())
    for end in ends:
        if not os.fork():
            with _exit_afterwards():
                control.close()
                for other in ends:
                    if other is not end:
                        other.close()
                _decode_requests(end, loader)
    for end in ends:
        end.close()
    control.recv(1)  # until the end of the run
    os.killpg(0, signal.SIGKILL)


@contextlib.contextmanager
def _exit_afterwards() -> Iterator[None]:
    """Exit a forked process in any case, without the exit handlers of its parent."""
    try:
        yield
    finally:
        os._exit(0)


def _sample_image() -> Bytes:
    """Return a decoded image, to load the libraries."""
    file = io.BytesIO()
    Image.new("RGB", (80, 64)).save(file, "JPEG")
    return decode_pixels(file.getvalue())


def _decode_requests(connection: socket.socket, loader: ImageLoader) -> None:
    """Run a decoder until the connection is closed."""
    allocator: Any = Image.core  # type: ignore[attr-defined]
    allocator.set_blocks_max(_PILLOW_BLOCKS)  # allocating memory again takes longer
    with connection, connection.makefile("rwb") as file, contextlib.suppress(EOFError, OSError):
        pickle.dump("ready", file)
        file.flush()
        while True:
            found = [_load(loader, index) for index in pickle.load(file)]
            pickle.dump(found, file, protocol=pickle.HIGHEST_PROTOCOL)
            file.flush()


def _load(loader: ImageLoader, index: int) -> Bytes | Problem | None:
    """Return an image, a problem, or None for an error, which recurs in the process of the run."""
    try:
        return loader(index)
    except Exception:
        return None

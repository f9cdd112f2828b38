"""A network that can be killed: a process that passes bytes on to a server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from pathlib import Path

__all__ = ["Tunnel"]


class Tunnel:
    """A connection to a server that can be cut and restored at the same address.

    The address stays ours while nobody passes bytes on: whoever calls meanwhile waits, as in a network that
    swallows everything, however long the next process takes to start.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream.removeprefix("http://")
        self._place = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._place.getsockname()[1]}"

    def cut(self) -> None:
        """SIGKILL for the process; then there is another one."""
        with self._lock:  # several jobs use it
            self._end()
            self._start()

    def close(self) -> None:
        self._end()
        self._place.close()

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _start(self) -> None:
        number = self._place.fileno()
        command = [sys.executable, "-S", str(Path(__file__)), str(number), self._upstream]
        self._process = subprocess.Popen(command, pass_fds=[number])


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(ConnectionError, RuntimeError):
        writer.close()


async def _serve(number: int, upstream: str) -> None:
    host, _, there = upstream.rpartition(":")

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            predicted, questions = await asyncio.open_connection(host, int(there))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_forward(reader, questions), _forward(predicted, writer))

    server = await asyncio.start_server(visit, sock=socket.socket(fileno=number))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2]))

"""Services for jobs: an S3 server behind a connection that can be cut, and a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from beaufort._core.remote import Remote
from tests.store.s3_server import BUCKET, environment, s3_server
from tests.torture.mortals import ROOT, family, kill
from tests.torture.tunnel import Tunnel

if TYPE_CHECKING:
    from tests.torture.jobs import Kind

__all__ = ["Cluster", "Places"]

Parts = list[tuple[str, Callable[[], object]]]


class Places:
    """Started when they are first needed, and ended with the block."""

    def __enter__(self) -> Places:
        self._stack = contextlib.ExitStack()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @cached_property
    def tunnel(self) -> Tunnel:
        """The way to an S3 server; this process has it in its environment."""
        tunnel = Tunnel(self._stack.enter_context(s3_server()))
        self._stack.callback(tunnel.close)
        os.environ.update(environment(tunnel.address))
        return tunnel

    @cached_property
    def cluster(self) -> Cluster:
        self.tunnel  # noqa: B018  workers take the environment of now
        cluster = Cluster()
        self._stack.callback(cluster.close)
        return cluster

    def environment(self, kind: Kind) -> dict[str, str]:
        """Return the environment of a kind of job."""
        found = environment(self.tunnel.address) if kind.store == "s3" else {}
        return found | (self.cluster.environment if kind.engine == "ray" else {})

    def store(self, kind: Kind, folder: Path, name: str) -> str:
        """A place for a new store."""
        if kind.store == "s3":
            return f"s3://{BUCKET}/{os.getpid()}/{kind.engine}/{name}"
        shutil.rmtree(folder / "store" / name, ignore_errors=True)
        return str(folder / "store" / name)

    def forget(self, location: str) -> None:
        """Delete a checked store."""
        if not location.startswith("s3://"):
            shutil.rmtree(location, ignore_errors=True)
            return
        place = Remote(location)
        with contextlib.suppress(FileNotFoundError):
            place.call(lambda: place.fs.rm(place.root, recursive=True))

    def parts(self, kind: Kind) -> Parts:
        """Return the processes besides the command that can be killed."""
        found: Parts = [("network", self.tunnel.cut)] if kind.store == "s3" else []
        return found + (self.cluster.parts() if kind.engine == "ray" else [])

    def settle(self, kind: Kind) -> None:
        """Wait until no process works for a killed command."""
        if kind.engine == "ray":
            self.cluster.settle()


class Cluster:
    """A Ray cluster of two nodes on this machine, one of which can be killed, and is there again then."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="ray-")
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        """What whoever joins needs to know."""
        self._head = self._start(
            *("--head", "--port=0", "--include-dashboard=false", "--node-ip-address=127.0.0.1"),
            f"--temp-dir={self._folder}",
        )
        self.address = "127.0.0.1:" + _wait_for(self._head, rb"--address='[\d.]+:(\d+)'")
        self._other = self._start(f"--address={self.address}")

    def close(self) -> None:
        for node in (self._other, self._head):
            self._kill(node)
        shutil.rmtree(self._folder, ignore_errors=True)

    def parts(self) -> Parts:
        found: Parts = [("node", self._kill_node)]
        for one in self._workers():
            found += [("worker", lambda one=one: kill(one))]  # type: ignore[misc]
        return found

    def settle(self) -> None:
        """Wait until no worker is left."""
        until = time.monotonic() + 60
        while self._workers() and time.monotonic() < until:
            time.sleep(0.1)

    def _start(self, *options: str) -> subprocess.Popen[bytes]:
        """A node, whose processes are a group of their own."""
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=2", *options]
        node = subprocess.Popen(
            [*command, "--disable-usage-stats"] if "--head" in options else command,
            env=os.environ | {"PYTHONPATH": path} | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _wait_for(node, rb"(Ray runtime started)")
        return node

    def _kill(self, node: subprocess.Popen[bytes]) -> None:
        workers = family(node.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)
        for one in workers:
            kill(one)
        node.communicate()

    def _kill_node(self) -> None:
        """SIGKILL for all that a node consists of; then there is another one."""
        self._kill(self._other)
        self._other = self._start(f"--address={self.address}")

    def _workers(self) -> list[int]:
        """Processes of actors, by the name that Ray gives them."""
        return [
            one
            for node in (self._head, self._other)
            for one in family(node.pid)[1:]
            if _command(one).startswith(b"ray::") and b"orker" in _command(one)
        ]


def _wait_for(node: subprocess.Popen[bytes], pattern: bytes) -> str:
    """Return the next match of a pattern in the output of a starting node."""
    assert node.stdout is not None
    while (found := re.search(pattern, line := node.stdout.readline())) is None:
        if not line:
            raise RuntimeError("a Ray node did not start")
    return found[1].decode()


def _command(process: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""

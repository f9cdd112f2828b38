"""What jobs need around them: an S3 server with a way to it that can be cut, and a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.store.s3_server import BUCKET, environment, s3_server
from tests.torture.mortals import ROOT, kill
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
        """What a job of some kind needs in its environment."""
        return environment(self.tunnel.address) if kind.store == "s3" else {}

    def store(self, kind: Kind, folder: Path, name: str) -> str:
        """A place for a new store."""
        if kind.store == "s3":
            return f"s3://{BUCKET}/{os.getpid()}/{kind.engine}/{name}"
        shutil.rmtree(folder / "store" / name, ignore_errors=True)
        return str(folder / "store" / name)

    def forget(self, location: str) -> None:
        """Delete a store that was looked at."""
        if not location.startswith("s3://"):
            shutil.rmtree(location, ignore_errors=True)
            return
        import fsspec

        files, root = fsspec.core.url_to_fs(location)
        with contextlib.suppress(FileNotFoundError):
            files.rm(root, recursive=True)

    def parts(self, kind: Kind) -> Parts:
        """What else than the command itself can be killed."""
        found: Parts = [("network", self.tunnel.cut)] if kind.store == "s3" else []
        return found + (self.cluster.parts() if kind.engine == "ray" else [])

    def settle(self, kind: Kind) -> None:
        """Wait until nobody works any more for a command that is gone."""
        if kind.engine == "ray":
            self.cluster.settle()


class Cluster:
    """A Ray cluster of two nodes on this machine, one of which can be killed, and is there again then."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as Nodes

        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self._nodes: Any = Nodes(
            initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
        )
        self._other = self._nodes.add_node(num_cpus=2)
        self.address: str = self._nodes.address

    def close(self) -> None:
        self._nodes.shutdown()

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

    def _kill_node(self) -> None:
        """SIGKILL for what a node consists of; then there is another one."""
        for infos in self._other.all_processes.values():
            for info in infos:
                kill(info.process.pid)
        self._nodes.remove_node(self._other, allow_graceful=False)
        self._other = self._nodes.add_node(num_cpus=2)

    def _workers(self) -> list[int]:
        """Processes of actors, by the name that Ray gives them."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "cmdline").read_bytes().startswith(b"ray::") and b"orker" in (
                    folder / "cmdline"
                ).read_bytes():
                    found.append(int(folder.name))
        return found

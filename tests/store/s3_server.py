"""An S3 server in its own process, and a proxy in front of it that simulates network faults."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

__all__ = ["BUCKET", "Proxy", "Request", "environment", "make_bucket", "s3_server"]

BUCKET = "results"
ROOT = Path(__file__).resolve().parent.parent.parent
KEY, SECRET = "AKIAEXAMPLE", "a-very-secret-key"


def environment(address: str) -> dict[str, str]:
    """The usual environment variables, with made-up credentials."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": address,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server that runs meanwhile, with an empty bucket."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.store.s3_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        make_bucket(address, BUCKET)
        yield address
    finally:
        server.kill()
        server.communicate()


def make_bucket(address: str, name: str) -> None:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=600)
    connection.request("PUT", f"/{name}")
    connection.getresponse().read()
    connection.close()


@dataclass(frozen=True)
class Request:
    """A request of a client."""

    method: str
    path: str
    """With the question behind it."""
    number: int
    """Of all requests so far, from 0."""

    @property
    def lists(self) -> bool:
        return "list-type=2" in self.path


Fault = Callable[["_Handler", "Request", bytes], None]


@dataclass
class Proxy:
    """Passes requests on, and does to some of them what networks do."""

    upstream: str
    faults: Callable[[Request], str | None] = lambda request: None
    """The name of a fault for a request; None for none."""
    requests: list[Request] = field(default_factory=list)
    listings: dict[str, list[tuple[int, list[tuple[str, str]], bytes]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    lag: int = 0
    """By how many responses a listing is out of date."""

    def __enter__(self) -> Proxy:
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self.closing = threading.Event()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        with self._lock:  # who still has a connection to it must notice
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def connected(self, connection: socket.socket) -> Iterator[None]:
        """Keep a connection in mind, to cut it at the end."""
        with self._lock:
            self._connections.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._connections.discard(connection)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, method: str, path: str) -> Request:
        with self._lock:
            request = Request(method, path, len(self.requests))
            self.requests.append(request)
            return request


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: Proxy

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        with self.owner.connected(self.connection), contextlib.suppress(ConnectionError):
            super().handle()

    def _any(self) -> None:
        with contextlib.suppress(ConnectionError):
            request = self.owner.take(self.command, self.path)
            fault = self.owner.faults(request)
            length = int(self.headers.get("Content-Length") or 0)
            if fault == "cut upload":
                self.rfile.read(length // 2)
                self._hang_up()
                return
            body = self.rfile.read(length)
            if fault is None:
                self._respond(request, *self._forward(body))
            else:
                getattr(self, "_" + fault.replace(" ", "_"))(request, body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _any  # noqa: N815

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = http.client.HTTPConnection(self.owner.upstream.removeprefix("http://"), timeout=600)
        passed = {k: v for k, v in self.headers.items() if k.lower() not in ("expect", "connection")}
        upstream.request(self.command, self.path, body, passed)
        result = upstream.getresponse()
        content = result.read()
        upstream.close()
        skipped = ("transfer-encoding", "connection", "content-length", "date", "server")
        headers = [(k, v) for k, v in result.getheaders() if k.lower() not in skipped]
        length = result.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        return result.status, [*headers, ("Content-Length", length or "0")], content

    def _respond(self, request: Request, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        if request.lists and self.owner.lag:
            predicted = self.owner.listings[request.path]
            predicted.append((status, headers, content))
            status, headers, content = predicted[max(0, len(predicted) - 1 - self.owner.lag)]
        self._head(status, headers)
        self.wfile.write(content)

    def _head(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _hang_up(self) -> None:
        self.wfile.flush()
        self.close_connection = True

    # Faults

    def _error_500(self, request: Request, body: bytes) -> None:
        self._reject(500, "InternalError", "We encountered an error.")

    def _slow_down(self, request: Request, body: bytes) -> None:
        self._reject(503, "SlowDown", "Please reduce your request rate.")

    def _denied(self, request: Request, body: bytes) -> None:
        self._reject(403, "AccessDenied", "Access Denied")

    def _reject(self, status: int, code: str, message: str) -> None:
        content = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        self._head(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))])
        if self.command != "HEAD":
            self.wfile.write(content)

    def _no_response(self, request: Request, body: bytes) -> None:
        self.owner.closing.wait(60)
        self._hang_up()

    def _cut(self, request: Request, body: bytes) -> None:
        """Half of the body, and no more."""
        status, headers, content = self._forward(body)
        self._head(status, headers)
        self.wfile.write(content[: len(content) // 2])
        self._hang_up()

    def _lost_response(self, request: Request, body: bytes) -> None:
        """Complete the request but close the connection without a response."""
        self._forward(body)
        self._hang_up()

    def _slow(self, request: Request, body: bytes) -> None:
        status, headers, content = self._forward(body)
        self._head(status, headers)
        for start in range(0, len(content), max(1, len(content) // 4)):
            time.sleep(0.02)
            self.wfile.write(content[start : start + max(1, len(content) // 4)])
            self.wfile.flush()


FAULTS = ("error 500", "slow down", "no response", "cut", "cut upload", "lost response", "slow")


def serve() -> None:
    """Serve until the client disconnects."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    print(f"http://127.0.0.1:{server.get_host_and_port()[1]}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve()

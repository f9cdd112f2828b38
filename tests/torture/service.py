"""A local service that misbehaves in many ways, and the outcomes for models."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from beaufort._core.errors import BeaufortError
from beaufort.models import load_model

__all__ = ["BEHAVIORS", "OPTIONS", "Outcome", "Service", "request", "request_with"]

CLASSES, IMAGES = 3, 2
TIMEOUT_S = 0.6
"""Timeout for a response that never comes; any other may take as long as a busy machine needs."""
LONGEST_S = 60.0
"""Maximum duration of a request on a busy machine; waiting for a missing response would exceed it."""
SECRET = "s3cr3t-t0ken-0123456789"

Behavior = Callable[[socket.socket, int], None]
"""Responds to one request on a connection; the number counts the attempts with this behavior, from 0."""

BEHAVIORS: dict[str, tuple[Behavior, str]] = {}
"""Behaviors by name, with the expected outcome: `reply` or `error`."""

LATE: set[str] = set()
"""Names of behaviors whose response, or first response, exceeds the timeout."""


def _behavior(outcome: str, *, late: bool = False) -> Callable[[Behavior], Behavior]:
    def register(function: Behavior) -> Behavior:
        name = function.__name__.strip("_")
        BEHAVIORS[name] = function, outcome
        if late:
            LATE.add(name)
        return function

    return register


def _http(body: bytes, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers]
    if length != -1:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


GOOD = json.dumps({"logits": [[0.5, 1, -2]] * IMAGES}).encode()


def _fixed(name: str, outcome: str, *parts: bytes) -> None:
    """Return a behavior that sends the same bytes for every request."""
    BEHAVIORS[name] = (lambda line, attempt: line.sendall(b"".join(parts))), outcome


def _value(name: str, value: Any, outcome: str = "error") -> None:
    """Return a behavior that responds with a JSON value."""
    _fixed(name, outcome, _http(value if isinstance(value, bytes) else json.dumps(value).encode()))


_fixed("good", "reply", _http(GOOD))
_fixed("good without a length", "reply", _http(GOOD, length=-1))
_fixed(
    "good in chunks",
    "reply",
    _http(b"%x\r\n%b\r\n0\r\n\r\n" % (len(GOOD), GOOD), "200 OK", "Transfer-Encoding: chunked", length=-1),
)
_fixed("good after a 103", "reply", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", _http(GOOD))
_fixed("created", "reply", _http(GOOD, "201 Created"))
_fixed("nothing", "error")
_fixed("garbage", "error", b"\0\xff\x1b[2J" * 100)
_fixed("no status", "error", b"\r\n\r\n")
_fixed("half a status line", "error", b"HTTP/1.")
_fixed("status 99999", "error", b"HTTP/1.1 99999 Huh\r\n\r\n")
_fixed("status 0", "error", b"HTTP/1.1 0 Huh\r\n\r\n")
_fixed("status words", "error", b"HTTP/1.1 OK fine\r\n\r\n")
_fixed(
    "switching protocols",
    "error",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
)
_fixed("http 9", "error", b"HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n")
_fixed("ssh", "error", b"SSH-2.0-OpenSSH_9.0\r\n")
_fixed("no content", "error", b"HTTP/1.1 204 No Content\r\n\r\n")
_fixed("empty", "error", _http(b""))
_fixed("a header without a colon", "error", b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n")
_fixed("two lengths", "error", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 9\r\n\r\n" + GOOD)
_fixed("a length below zero", "error", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + GOOD)
_fixed("a length of words", "error", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n" + GOOD)
_fixed("a length of 10^40", "error", b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 40 + b"\r\n\r\n" + GOOD)
_fixed("too short", "error", _http(GOOD, length=len(GOOD) + 10))
_fixed("too long", "error", _http(GOOD, length=len(GOOD) - 10))
_fixed("cut in the headers", "error", _http(GOOD)[:40])
_fixed("cut in a chunk", "error", _http(b"fff\r\n{", "200 OK", "Transfer-Encoding: chunked", length=-1))
_fixed(
    "chunks of garbage", "error", _http(b"zz\r\n" + GOOD, "200 OK", "Transfer-Encoding: chunked", length=-1)
)
_fixed(
    "a chunk of 10^20", "error", _http(b"f" * 20 + b"\r\n", "200 OK", "Transfer-Encoding: chunked", length=-1)
)
_fixed("cut without a length", "error", _http(GOOD[:-5], length=-1))
_fixed("a huge header", "error", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000 + b"\r\n\r\n" + GOOD)
_fixed("100,000 headers", "error", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100_000 + b"\r\n" + GOOD)
_fixed("gzip", "error", _http(zlib.compress(GOOD, wbits=31), "200 OK", "Content-Encoding: gzip"))
_fixed(
    "a gzip bomb",
    "error",
    _http(zlib.compress(b" " * 50_000_000 + GOOD, wbits=31), "200 OK", "Content-Encoding: gzip"),
)
_fixed("brotli", "error", _http(GOOD, "200 OK", "Content-Encoding: br"))
_fixed("an encoding of garbage", "error", _http(GOOD, "200 OK", "Content-Encoding: \x1b[2J, gzip"))
_fixed("a redirect to a file", "error", _http(b"", "302 Found", "Location: file:///etc/passwd"))
_fixed("a redirect to nowhere", "error", _http(b"", "307 Temporary Redirect", "Location: "))
_fixed("a redirect to itself", "error", _http(b"", "308 Permanent Redirect", "Location: /classify"))
_fixed("not modified", "error", b"HTTP/1.1 304 Not Modified\r\n\r\n")
_fixed(
    "an auth challenge",
    "error",
    _http(b"who?", "401 Unauthorized", 'WWW-Authenticate: Basic realm="\x1b]0;x"'),
)
_fixed(
    "terminal escapes", "error", _http(b"\x1b[2J\x1b]0;owned\x07\x9b31m\r\nbeaufort: all is well", "400 Bad")
)
_fixed("a bell in the reason", "error", b"HTTP/1.1 400 Bad\x07Reason\r\nContent-Length: 0\r\n\r\n")
_fixed("lone surrogates", "error", _http(b'{"error": "\\ud800"}', "400 Bad"))
_fixed(
    "the token sent back",
    "error",
    _http(f"your token {SECRET} is wrong; http://u:p@h/?k={SECRET}".encode(), "403 No"),
)
_fixed("wait for ever", "error", _http(b"", "429 Slow", "Retry-After: 99999999999"))
_fixed("wait until never", "error", _http(b"", "503 Slow", "Retry-After: Fri, 31 Dec 99999 23:59:59 GMT"))
_fixed("wait for nothing", "error", _http(b"", "503 Slow", "Retry-After: -5"))
_fixed("wait for words", "error", _http(b"", "429 Slow", "Retry-After: \xe9 soon"))
_fixed("500 and html", "error", _http(b"<html><script>alert(1)</script>", "500 Oops"))
_fixed(
    "cookies",
    "reply",
    _http(GOOD, "200 OK", "Set-Cookie: a=b; Domain=.example; Max-Age=x", "Set-Cookie: \xff"),
)
_value("html", b"<html>")
_value("a list", [[1, 2, 3]])
_value("null", None)
_value("a number", 7)
_value("no logits", {"scores": []})
_value("logits null", {"logits": None})
_value("logits a text", {"logits": "abc"})
_value("logits a dict", {"logits": {"0": [1, 2, 3]}})
_value("rows of texts", {"logits": [["1", "2", "3"]] * IMAGES})
_value("rows of nulls", {"logits": [[None] * 3] * IMAGES})
_value("rows of lists", {"logits": [[[1], [2], [3]]] * IMAGES})
_value("rows of booleans", {"logits": [[True, False, True]] * IMAGES})
_value("ragged rows", {"logits": [[1, 2, 3], [1, 2]]})
_value("a row too few", {"logits": [[1, 2, 3]]})
_value("a row too many", {"logits": [[1, 2, 3]] * (IMAGES + 1)})
_value("a class too few", {"logits": [[1, 2]] * IMAGES})
_value("empty rows", {"logits": [[]] * IMAGES})
_value("no rows", {"logits": []})
_value("NaN", b'{"logits": [[NaN, 1, 2], [0, 1, 2]]}')
_value("infinity", b'{"logits": [[Infinity, 1, 2], [0, 1, 2]]}')
_value("masked classes", b'{"logits": [[-Infinity, 1, 2], [0, 1, 2]]}', "reply")
_value("1e400", b'{"logits": [[1e400, 1, 2], [0, 1, 2]]}')
_value("1e39, too large for float32", {"logits": [[1e39, 1, 2]] * IMAGES})
_value("an integer of 400 digits", b'{"logits": [[' + b"9" * 400 + b", 1, 2], [0, 1, 2]]}")
_value("an integer of 5000 digits", b'{"logits": [[' + b"9" * 5000 + b", 1, 2], [0, 1, 2]]}")
_value("nested 100,000 deep", b'{"logits": ' + b"[" * 30_000 + b"]" * 30_000 + b"}")
_value("a key twice", b'{"logits": 1, "logits": [[1,2,3],[1,2,3]]}', "reply")
_value("a BOM", b"\xef\xbb\xbf" + GOOD, "reply")
_value("UTF-16", GOOD.decode().encode("utf-16"), "reply")
_value("not UTF-8", b'{"logits": [[1,2,3],[1,2,3]], "a": "\xff"}')
_value("NUL behind", GOOD + b"\0")
_value("another version", {"logits": [[1, 2, 3]] * IMAGES, "version": "\x1b[31m8\ud800"})
_value("a version of a list", {"logits": [[1, 2, 3]] * IMAGES, "version": [7]})
_value("megabytes of spaces", b" " * 5_000_000 + GOOD)


@_behavior("error", late=True)
def _a_byte_a_second(line: socket.socket, attempt: int) -> None:
    for byte in _http(GOOD):
        line.sendall(bytes([byte]))
        time.sleep(0.2)


@_behavior("error", late=True)
def _a_byte_a_second_of_the_body(line: socket.socket, attempt: int) -> None:
    head, _, body = _http(GOOD).partition(b"\r\n\r\n")
    line.sendall(head + b"\r\n\r\n")
    for byte in body:
        line.sendall(bytes([byte]))
        time.sleep(0.2)


@_behavior("error", late=True)
def _headers_without_end(line: socket.socket, attempt: int) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(10_000):
        line.sendall(b"A%d: b\r\n" % number)
        time.sleep(0.05)


@_behavior("error", late=True)
def _endless_early_hints(line: socket.socket, attempt: int) -> None:
    for _ in range(10_000):
        line.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(0.02)


@_behavior("error", late=True)
def _a_body_without_end(line: socket.socket, attempt: int) -> None:
    line.sendall(_http(b"", length=-1))
    while True:
        line.sendall(b" " * 65536)


@_behavior("error", late=True)
def _silence(line: socket.socket, attempt: int) -> None:
    line.recv(1)  # until the caller hangs up


@_behavior("error")
def _reset(line: socket.socket, attempt: int) -> None:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@_behavior("reply")
def _cut_once(line: socket.socket, attempt: int) -> None:
    line.sendall(_http(GOOD)[: -10 if attempt == 0 else None])


@_behavior("reply")
def _busy_once(line: socket.socket, attempt: int) -> None:
    line.sendall(_http(b"later", "503 Busy", "Retry-After: 0") if attempt == 0 else _http(GOOD))


@_behavior("reply")
def _reset_once(line: socket.socket, attempt: int) -> None:
    if attempt == 0:
        _reset(line, attempt)
    else:
        line.sendall(_http(GOOD))


@_behavior("reply", late=True)
def _slow_once(line: socket.socket, attempt: int) -> None:
    if attempt == 0:
        line.recv(1)  # until the caller hangs up
    line.sendall(_http(GOOD))


OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(
        ("", {"timeout": value})
        for value in (0, -1, float("nan"), float("inf"), "soon", None, True, 1e9, [1])
    ),
    *(("", {"retries": value}) for value in (-1, 1.5, "many", None, True, 10**9)),
    *(("", {"max_batch": value}) for value in (0, -1, 1.5, "all", None, True)),
    *(("", {"token": value}) for value in ("", "a b", "A-B", 5, SECRET, "A\0B", True)),
    *(("", {"classes": value}) for value in (0, -1, True, [], [1], "/no/such/file", {"a": 1})),
    *(
        ("", {key: value})
        for key, value in (("version", " "), ("layout", "NCHW"), ("range", "0..1"), ("dtype", "x"))
    ),
    *((address, {}) for address in ("http://", "http://[::1", "http://host:99999/", "http://host:port/")),
    *(
        (address, {})
        for address in ("http://me:pw@host/", "http://me@host/", "http://ho st/", "http://host/\x1b[0m")
    ),
    *(
        (address, {})
        for address in ("http://\ud800/", "http://" + "a" * 300 + "/", "http://.../", "http://%00/")
    ),
)
"""Addresses and options that must be rejected, on loading the model or at the first request."""


@dataclass
class Outcome:
    """Results of requests."""

    requests: int = 0
    replies: int = 0
    errors: int = 0
    findings: list[str] = field(default_factory=list)
    """What must not happen: other exceptions, wrong outcomes, time or secrets that got away."""


class Service:
    """A server that shows one behavior at a time."""

    def __init__(self) -> None:
        self.behavior: Behavior = BEHAVIORS["good"][0]
        self.attempt = 0
        self._lines: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}/classify"
        threading.Thread(target=self._serve, daemon=True).start()

    def show(self, behavior: Behavior) -> None:
        """Begin with another behavior."""
        self.behavior, self.attempt = behavior, 0

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._socket.accept()
                threading.Thread(target=self._respond, args=(line,), daemon=True).start()

    def _respond(self, line: socket.socket) -> None:
        with contextlib.suppress(OSError), line:
            line.settimeout(2 * LONGEST_S)
            _read_request(line)
            attempt, self.attempt = self.attempt, self.attempt + 1
            self.behavior(line, attempt)
            line.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()


def _read_request(line: socket.socket) -> None:
    content = b""
    while b"\r\n\r\n" not in content:
        content += line.recv(65536)
    head, _, body = content.partition(b"\r\n\r\n")
    length = next(int(one[15:]) for one in head.split(b"\r\n") if one.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += line.recv(65536)


@contextlib.contextmanager
def _quick(token: bool) -> Iterator[None]:
    """Short waits between attempts, the token in its place, no proxy in between."""
    import os

    from beaufort.models import http

    before = dict(os.environ), http._FIRST_WAIT_S
    os.environ.update({"no_proxy": "*", **({"TORTURE_TOKEN": SECRET} if token else {})})
    http._FIRST_WAIT_S = 0.01
    try:
        yield
    finally:
        http._FIRST_WAIT_S = before[1]
        os.environ.clear()
        os.environ.update(before[0])


def request(names: list[str] | None = None) -> Outcome:
    """Ask the service in each of its moods; what a model makes of it is counted and judged."""
    outcome, service = Outcome(), Service()
    images = np.arange(IMAGES * 16 * 16 * 3, dtype=np.uint8).reshape(IMAGES, 16, 16, 3)
    with _quick(token=True):
        for name in names or list(BEHAVIORS):
            behavior, wanted = BEHAVIORS[name]
            service.show(behavior)
            start = time.monotonic()
            question = partial(_question, f"{service.address}?key=hidden", images, **_given(name))
            got = _judge(outcome, name, question)
            if got != wanted:
                outcome.findings.append(f"{name}: expected {wanted}, got {got}")
            if (taken := time.monotonic() - start) > LONGEST_S:
                outcome.findings.append(f"{name}: took {taken:.1f} s")
    service.close()
    return outcome


def request_with(options: tuple[tuple[str, dict[str, Any]], ...] = OPTIONS) -> Outcome:
    """Load models with invalid addresses and options."""
    outcome, service = Outcome(), Service()
    images = np.zeros((1, 16, 16, 3), np.uint8)
    with _quick(token=False):
        for address, given in options:
            case = f"{address!r} {given!r}"
            limits = {"timeout": 0.5, "retries": 0, **given}
            got = _judge(outcome, case, partial(_question, address or service.address, images, **limits))
            if got != "error":
                outcome.findings.append(f"{case}: expected an error, got {got}")
    service.close()
    return outcome


def _given(name: str) -> dict[str, Any]:
    """Return the options of a model for a behavior; one that fails once needs further attempts.

    More than one, because on a busy machine a connection may be reset as well.
    """
    patience = {"timeout": TIMEOUT_S} if name in LATE else {"timeout": LONGEST_S}
    retries = 8 if name == "slow_once" else 3 if name.endswith("_once") else 1
    return {"classes": CLASSES, "version": "7", "token": "TORTURE_TOKEN", "retries": retries, **patience}


def _question(address: str, images: np.ndarray, **options: Any) -> object:
    return load_model(address, **options)(images)


def _judge(outcome: Outcome, name: str, work: Callable[[], Any]) -> str:
    outcome.requests += 1
    try:
        work()
        outcome.replies += 1
        return "reply"
    except BeaufortError as error:
        outcome.errors += 1
        text = str(error)
        for secret in (SECRET, "TORTURE_TOKEN", "hidden", "me:pw", "\x1b", "\x07", "\x9b"):
            if secret in text:
                outcome.findings.append(f"{name}: the error contains {secret!r}: {text!r:.200}")
        return "error"
    except Exception as error:
        outcome.findings.append(f"{name}: {type(error).__name__}: {error!s:.200}")
        return "error"

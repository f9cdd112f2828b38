"""Requests to one service, each with one time limit for all of it.

httpx2 keeps connections open from request to request. Its time limits are for single steps, so the wait
for a service that sends a byte a second would never end; here a request runs in a thread of its own, and
whatever it is at (a name being looked up, a handshake, headers, the answer) is left when the time is over.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import httpx2


class NoAnswerError(Exception):
    """The service sent no answer, or only a part of one; the request may be tried again."""


class Reply(NamedTuple):
    """What a service sent."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    content: bytes
    """At most what was asked for; `whole` says whether there was more."""
    whole: bool


class Client:
    """A line to a service that stays open between requests."""

    def __init__(self, address: str, timeout: float) -> None:
        import httpx2  # an eighth of a second

        self._address = httpx2.URL(address)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._client = self._open()

    def post(self, body: bytes, headers: Mapping[str, str], most: int) -> Reply:
        """Send a request, and take up to `most` bytes of the response."""
        coming: Future[Reply] = Future()
        with self._lock:
            client = self._client

        def work() -> None:  # what happens becomes the future's, and is nobody's when the time is over
            try:
                coming.set_result(self._exchange(client, body, headers, most))
            except BaseException as error:
                coming.set_exception(error)

        threading.Thread(target=work, daemon=True, name="beaufort-http").start()
        try:
            return coming.result(self._timeout)
        except TimeoutError:
            self._reopen(client)
            raise self._too_late() from None

    def _exchange(self, client: httpx2.Client, body: bytes, headers: Mapping[str, str], most: int) -> Reply:
        import httpx2

        end = time.monotonic() + self._timeout
        content = bytearray()
        try:
            with client.stream("POST", self._address, content=body, headers=dict(headers)) as answer:
                for chunk in answer.iter_raw(1 << 16):
                    content += chunk
                    if time.monotonic() > end:
                        raise self._too_late()
                    if len(content) > most:
                        break
                found = {name.lower(): value for name, value in answer.headers.items()}
                return Reply(answer.status_code, found, bytes(content[:most]), len(content) <= most)
        except httpx2.TimeoutException:
            raise self._too_late() from None
        except (httpx2.HTTPError, httpx2.StreamError, OSError, RuntimeError, ValueError) as error:
            raise NoAnswerError(str(error) or type(error).__name__) from None

    def _too_late(self) -> NoAnswerError:
        return NoAnswerError(f"timed out after {self._timeout:g} s")

    def _open(self) -> httpx2.Client:
        import httpx2

        client = httpx2.Client(timeout=self._timeout, follow_redirects=False)
        self._close = weakref.finalize(self, client.close)
        return client

    def _reopen(self, client: httpx2.Client) -> None:
        """Hang up, which also ends the thread that is still listening."""
        with self._lock:
            if self._client is client:
                self._close()
                self._client = self._open()

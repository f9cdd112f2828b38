"""HTTP requests to one service, each with a time limit for the whole request.

httpx2 keeps connections open, but its time limits are for single steps: a service that sends one byte per
second would never time out. So each request runs in a thread, which is abandoned when the time is over.
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


class NoResponseError(Exception):
    """The service sent no response, or an incomplete one; the request may be repeated."""


class Response(NamedTuple):
    """A response of a service."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    content: bytes
    complete: bool
    """False if the content was longer than the limit."""


class Client:
    """A connection to a service that stays open between requests."""

    def __init__(self, address: str, timeout: float) -> None:
        import httpx2  # takes an eighth of a second

        self._address = httpx2.URL(address)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._client = self._open()

    def post(self, body: bytes, headers: Mapping[str, str], limit: int) -> Response:
        """Send a request and return up to `limit` bytes of the response."""
        future: Future[Response] = Future()
        with self._lock:
            client = self._client

        def work() -> None:
            try:
                future.set_result(self._exchange(client, body, headers, limit))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, daemon=True, name="beaufort-http").start()
        try:
            return future.result(self._timeout)
        except TimeoutError:
            with self._lock:
                if self._client is client:  # closing it also ends the thread
                    self._close()
                    self._client = self._open()
            raise self._timed_out() from None

    def _exchange(
        self, client: httpx2.Client, body: bytes, headers: Mapping[str, str], limit: int
    ) -> Response:
        import httpx2

        end = time.monotonic() + self._timeout
        content = bytearray()
        try:
            with client.stream("POST", self._address, content=body, headers=dict(headers)) as stream:
                for chunk in stream.iter_raw(1 << 16):
                    content += chunk
                    if time.monotonic() > end:
                        raise self._timed_out()
                    if len(content) > limit:
                        break
                names = {name.lower(): value for name, value in stream.headers.items()}
                return Response(stream.status_code, names, bytes(content[:limit]), len(content) <= limit)
        except httpx2.TimeoutException:
            raise self._timed_out() from None
        except (httpx2.HTTPError, httpx2.StreamError, OSError, RuntimeError, ValueError) as error:
            raise NoResponseError(str(error) or type(error).__name__) from None

    def _timed_out(self) -> NoResponseError:
        return NoResponseError(f"timed out after {self._timeout:g} s")

    def _open(self) -> httpx2.Client:
        import httpx2

        client = httpx2.Client(timeout=self._timeout, follow_redirects=False)
        self._close = weakref.finalize(self, client.close)
        return client

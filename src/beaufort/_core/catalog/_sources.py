"""Where a file may be: what a source is, and the one that is an address on the web."""

from __future__ import annotations

import gzip
import io
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, TypeAlias

_TIMEOUT_S = 10
_FORGIVEN_S = 60
_TRIES = 3
_NO_MORE = 416
_CHUNK = 1 << 20
_MOST_UNPACKED = 1 << 30

Tell: TypeAlias = Callable[[int, int], None]
"""Called as a file arrives, with the bytes that are there, and of how many."""

Unpack: TypeAlias = Callable[[bytes], bytes]
"""What makes a file of another. `bytes`, which changes nothing, is not called: the file is streamed."""


class Source(Protocol):
    """A place that may have a file."""

    @property
    def place(self) -> str:
        """What the place is called in messages."""

    def save(self, path: Path, tell: Tell) -> None:
        """Write the file to `path`; an `OSError` if it is not to be had."""


@dataclass(frozen=True)
class Url:
    """A file on the web, and what is to be taken out of it."""

    address: str
    unpack: Unpack = bytes

    @property
    def place(self) -> str:
        return self.address

    def save(self, path: Path, tell: Tell) -> None:
        arriving = arriving_at(path)
        for tries_left in reversed(range(_TRIES)):
            try:
                _download(self.address, arriving, tell)
                break
            except (ConnectionError, TimeoutError):
                if not tries_left:
                    raise
        with arriving.open("rb") as stream:
            pour(stream, path, self.unpack, tell)
        arriving.unlink()


def gunzip(content: bytes) -> bytes:
    """What a gzip file holds, up to a gibibyte: a small file can unpack to one that fills any memory."""
    with gzip.open(io.BytesIO(content)) as stream:
        unpacked = stream.read(_MOST_UNPACKED + 1)
    if len(unpacked) > _MOST_UNPACKED:
        raise ValueError(f"it unpacks to more than {_MOST_UNPACKED:,} bytes")
    return unpacked


def pour(stream: IO[bytes], path: Path, unpack: Unpack, tell: Tell) -> None:
    """Write to `path` what is unpacked from a stream."""
    with path.open("wb") as file:
        if unpack is bytes:
            shutil.copyfileobj(stream, file, _CHUNK)
        else:
            file.write(unpack(stream.read()))
        tell(file.tell(), file.tell())


def arriving_at(part: Path) -> Path:
    """Where a download stands until it is complete; it stays when the connection breaks."""
    return part.with_name(f"{part.name}.download")


_silent_servers: dict[str, float] = {}
"""When a server did not answer: one behind a wall that swallows everything is waited for once."""


def _download(address: str, path: Path, tell: Tell) -> None:
    """Add to `path` what it lacks, if the server can give a part, otherwise all."""
    import urllib.error  # half of what importing this module would cost
    import urllib.parse
    import urllib.request
    from http.client import HTTPException

    server = urllib.parse.urlsplit(address).netloc
    if time.monotonic() - _silent_servers.get(server, -_FORGIVEN_S) < _FORGIVEN_S:
        raise OSError("the server did not answer a moment ago")
    start = path.stat().st_size if path.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == _NO_MORE and start:
                return  # there is no more; the sha256 will tell whether it is right
            raise OSError(f"the server answered {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            _silent_servers[server] = time.monotonic()
        raise
    with answer:
        goes_on = (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-")
        with path.open("ab" if goes_on else "wb") as file:
            total = file.tell() + int(answer.headers.get("Content-Length") or 0)
            try:
                while chunk := answer.read(_CHUNK):
                    file.write(chunk)
                    tell(file.tell(), total)
            except HTTPException as error:
                raise ConnectionError(f"cut off ({error}); the next try goes on from there") from None
    if (size := path.stat().st_size) < total:
        raise ConnectionError(f"cut off at {size:,} of {total:,} bytes; the next try goes on from there")

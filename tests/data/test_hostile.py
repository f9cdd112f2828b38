"""Hostile and damaged datasets."""

from __future__ import annotations

import io
import os
import sqlite3
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import BeaufortError, ImageFileError
from beaufort.data import _digest, digest_of, iterate, load_dataset
from beaufort.data._files import OnDisk
from beaufort.data.images import MAX_SIDE, is_folder
from beaufort.data.mnist import read_idx
from beaufort.evaluation.samples import read_samples
from beaufort.models import as_model


def png(side: int = 16) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (side, side)).save(buffer, "PNG")
    return buffer.getvalue()


def tar_header(name: str, size: bytes, kind: bytes = b"0") -> bytes:
    head = bytearray(512)
    head[: len(name)] = name.encode()
    head[124:136] = size
    head[156:157] = kind
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


NEGATIVE = b"\xff" * 10 + struct.pack(">h", -512)
"""-512 as base 256, which tar has for large sizes."""


@pytest.mark.parametrize(
    "content",
    [
        tar_header("a.png", NEGATIVE) * 3,
        tar_header("a.png", b"\x80" + b"\xff" * 11) * 2,
        tar_header("a", b"77777777777\0", b"x") + bytes(1024),
        tar_header("a", b"77777777777\0", b"L") + bytes(1024),
        tar_header("a", NEGATIVE, b"x") + bytes(2048),
        tar_header("a", b"00000000013\0", b"x") + b"99 path=abc\n".ljust(512, b"\0"),
        (tar_header("a", b"00000000013\0", b"x") + b"11 path=abc\n".ljust(512, b"\0")) * 3000,
        tar_header("a.png", b"zzzzzzzzzzz\0") + bytes(512),
        tar_header("a", b"00000000000\0", b"S") + bytes(2048),
    ],
)
def test_headers_of_tars(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(BeaufortError):  # and comes to an end: a negative size leads back to the same header
        load_dataset(tmp_path / "a.tar")


def test_names_in_a_tar_with_invalid_unicode(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in (("caf\udce9.png", png()), ("caf\udce9.cls", b"1")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    assert load_dataset(tmp_path / "a.tar").ids == ["a.tar/caf\\xe9"]


@pytest.mark.parametrize(
    "head",
    [bytes([0, 0, 8, 255]), bytes([0, 0, 8, 0]), bytes([0, 0, 8, 3]), bytes([0, 0, 8, 4]) + b"\xff" * 16],
)
def test_headers_of_idx_files(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(head + bytes(300))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 0]))
    with pytest.raises(ImageFileError):
        read_idx(tmp_path / "t10k-images-idx3-ubyte")
    with pytest.raises(ImageFileError):
        load_dataset(tmp_path)


@pytest.mark.parametrize(
    "content", ["\n\n\n", "\n\nfile,label\na.png,1\n", "file,label\n\n\n\n", ",,,\n", "\r\r\r", "\0"]
)
def test_blank_lines_in_a_list(tmp_path: Path, content: str) -> None:
    (tmp_path / "labels.csv").write_text(content)
    with pytest.raises(ImageFileError):
        load_dataset(tmp_path)
    Image.new("RGB", (32, 32)).save(tmp_path / "grid.png")
    with pytest.raises(ImageFileError):
        load_dataset(tmp_path)


def test_blank_lines_between_rows_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("file,label\n\n\na.png,1\n\n")
    (tmp_path / "a.png").write_bytes(png())
    assert load_dataset(tmp_path)[0].label == 1


def npz(path: Path, images: np.ndarray, header: bytes, values: int) -> Path:
    """An .npz file whose labels have the given header and many zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("images.npy", "w") as file:
            np.save(file, images)
        with archive.open("labels.npy", "w") as file:
            file.write(header)
            for _ in range(values >> 20):
                file.write(bytes(1 << 20))
    return path


def npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text) + 1) + text + b"\n"


BOMBS: dict[str, Callable[[Path], Path]] = {
    "labels of 50 MB each": lambda path: npz(
        path, np.zeros((3, 8, 8), np.uint8), npy_header(f"|S{50 << 20}", (3,)), 150 << 20
    ),
    "a header of 150 MB": lambda path: npz(
        path, np.zeros((3, 8, 8), np.uint8), b"\x93NUMPY\x02\0" + struct.pack("<I", 150 << 20), 150 << 20
    ),
    "twenty million labels": lambda path: npz(
        path, np.zeros((20 << 20, 1, 1), np.uint8), npy_header("|i8", (20 << 20,)), 160 << 20
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_small_files_do_not_fill_the_memory(tmp_path: Path, name: str) -> None:
    path = BOMBS[name](tmp_path / "a.npz")
    assert path.stat().st_size < 3 << 20
    model = as_model(lambda images: images.mean(axis=(1, 2)), name="m", classes=3)
    tracemalloc.start()
    try:
        for read in (load_dataset, lambda path: read_samples(path, model)):
            with pytest.raises(ImageFileError):
                read(path)
        assert tracemalloc.get_traced_memory()[1] < 60 << 20
    finally:
        tracemalloc.stop()


def test_images_of_arrays_have_the_limits_of_files(tmp_path: Path) -> None:
    np.savez_compressed(
        tmp_path / "a.npz", images=np.zeros((1, MAX_SIDE + 1, 1), np.uint8), labels=np.zeros(1, np.int64)
    )
    with pytest.raises(ImageFileError, match="too large"):
        load_dataset(tmp_path / "a.npz")


def test_names_with_invalid_unicode(tmp_path: Path) -> None:
    folder = tmp_path / "data" / os.fsdecode(b"caf\xe9")
    folder.mkdir(parents=True)
    (folder / os.fsdecode(b"\xff.png")).write_bytes(png())
    data = load_dataset(tmp_path / "data")
    assert (data.ids, data.classes) == (["caf\\xe9/\\xff.png"], ("caf\\xe9",))
    assert data[0].image.shape == (16, 16, 1)
    (folder / "\\xff.png").write_bytes(png())
    with pytest.raises(ImageFileError, match="rename one"):
        load_dataset(tmp_path / "data")


def test_links_that_lead_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "data" / "cat").mkdir(parents=True)
    (tmp_path / "data" / "cat" / "a.png").write_bytes(png())
    for place in ("data/round", "data/cat/round", "data/cat/round.png"):
        (tmp_path / place).symlink_to(tmp_path / place)
    (tmp_path / "data" / "cat" / "up").symlink_to(tmp_path / "data")
    data = load_dataset(tmp_path / "data")
    read = [one for one in iterate(data) if not hasattr(one, "message")]
    assert "cat/a.png" in {one.id for one in read}
    with pytest.raises(BeaufortError):
        load_dataset(tmp_path / "data" / "round")
    with os.scandir(tmp_path / "data" / "cat") as entries:
        assert {entry.name: is_folder(entry) for entry in entries}["round"] is False


NOWHERE = (
    "x" * 5000,
    "a\0b",
    "\udcff",
    "csv:" + "y" * 5000,
    "npz:a\0b",
    "wds:{0..1}\0.tar",
    "folder:" + "z/" * 5000,
)


@pytest.mark.parametrize("spec", NOWHERE, ids=range(len(NOWHERE)))
def test_impossible_file_names(spec: str) -> None:
    with pytest.raises(BeaufortError):
        load_dataset(spec)


def test_a_locked_hash_cache_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_digest, "_TIMEOUT_S", 0.2)
    files = []
    for number in range(20):
        (tmp_path / f"{number}.bin").write_bytes(b"x")
        os.utime(tmp_path / f"{number}.bin", (1, 1))
        files.append(OnDisk(tmp_path / f"{number}.bin").content())
    digest_of((), [], np.zeros(0, np.int64), files)  # makes the database
    lock = sqlite3.connect(tmp_path / "cache" / "digests.sqlite", isolation_level=None)
    lock.execute("begin exclusive")
    waits: list[str] = []

    class Noted(sqlite3.Connection):
        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            try:
                return super().execute(sql, *given)
            except sqlite3.OperationalError as error:
                waits.append(str(error))
                raise

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Noted))
    digest_of((), [], np.zeros(0, np.int64), files)
    assert waits == ["database is locked"]
    lock.close()

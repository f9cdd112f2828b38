"""Image files in directories, zips and tars.

Archives are read in place and no file stays open, so a dataset can be passed to other threads and processes.
"""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort._core.text import encodable
from beaufort.data._checks import check_at_most, reading
from beaufort.data._dataset import Problem
from beaufort.data._digest import CHUNK, Content, chunks_of
from beaufort.data.images import decode_file, decode_pixels

MAX_MEMBER_BYTES = 1 << 28
"""Size of the largest file in an archive that is read, uncompressed."""
_MAX_DECOMPRESSED_BYTES = 1 << 30
_MAX_HEADER_BYTES = 1 << 20
"""Size of the largest tar header that is read; headers are loaded into memory."""
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ENCRYPTED = 0x1


@dataclass(frozen=True)
class Files:
    """Files below a directory, by their relative paths."""

    root: Path
    names: Sequence[str]

    def read(self, index: int) -> Bytes:
        return decode_file(self.root / self.names[index])

    def contents(self, count: int) -> Iterator[Content]:
        return (OnDisk(self.root / name).content() for name in self.names[:count])


class Member(Protocol):
    """The file of one image, on disk or in an archive."""

    def pixels(self) -> Bytes: ...

    def content(self) -> Content: ...


@dataclass(frozen=True)
class Members:
    """Files in several places."""

    members: Sequence[Member]

    def read(self, index: int) -> Bytes:
        return self.members[index].pixels()

    def contents(self, count: int) -> Iterator[Content]:
        return (member.content() for member in self.members[:count])


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A file on disk."""

    path: Path

    def pixels(self) -> Bytes:
        return decode_file(self.path)

    def content(self) -> Content:
        return Content(lambda: chunks_of(self.path), self.path)


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A file that is listed but missing."""

    message: str

    def pixels(self) -> Bytes:
        raise ImageFileError(self.message)

    def content(self) -> Content:
        return Content(lambda: [self.pixels().tobytes()])


@dataclass(frozen=True)
class InMemoryFile:
    """A file that was decompressed into memory."""

    data: bytes

    def pixels(self) -> Bytes:
        return decode_pixels(self.data)

    def content(self) -> Content:
        return Content(lambda: [self.data])


@dataclass(frozen=True, slots=True)
class TarMember:
    """A file in an uncompressed tar."""

    archive: Path
    start: int
    size: int

    def read(self) -> bytes:
        check_at_most("the file", self.size, MAX_MEMBER_BYTES)
        return _read(self.archive, self.start, self.size)

    def pixels(self) -> Bytes:
        return decode_pixels(self.read())

    def content(self) -> Content:
        return Content(lambda: [self.read()], self.archive, f"{self.start}+{self.size}")


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file in a zip, stored or deflated."""

    archive: Path
    name: str
    header: int
    packed_size: int
    size: int
    crc: int
    method: int
    flags: int

    def read(self) -> bytes:
        if self.flags & _ENCRYPTED or self.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ImageFileError("the file is encrypted or uses an unsupported compression method")
        check_at_most("the file", max(self.size, self.packed_size), MAX_MEMBER_BYTES)
        content = _read(self.archive, self.start(), self.packed_size)
        if self.method == zipfile.ZIP_DEFLATED:
            with reading("the compressed file", zlib.error):
                content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, self.size + 1)
        if len(content) != self.size or zlib.crc32(content) != self.crc:
            raise ImageFileError("the file is damaged: its checksum in the zip does not match")
        return content

    def start(self) -> int:
        """Return the offset of its bytes in the zip."""
        fields = _LOCAL_HEADER.unpack(_read(self.archive, self.header, _LOCAL_HEADER.size))
        if fields[0] != b"PK\3\4":
            raise ImageFileError("the zip is damaged: the file is not where the zip directory says")
        return self.header + _LOCAL_HEADER.size + int(fields[-2]) + int(fields[-1])

    def pixels(self) -> Bytes:
        return decode_pixels(self.read())

    def content(self) -> Content:
        return Content(lambda: [self.read()], self.archive, self.name)


def zip_members(path: Path) -> dict[str, ZipMember]:
    """Return the files in a zip by name, from its directory alone."""
    with reading(f"{path} as a zip"), zipfile.ZipFile(path) as archive:
        found = [info for info in archive.infolist() if not info.is_dir()]
    members = {
        info.filename: ZipMember(
            path,
            info.filename,
            info.header_offset,
            info.compress_size,
            info.file_size,
            info.CRC,
            info.compress_type,
            info.flag_bits,
        )
        for info in found
    }
    if len(members) != len(found):
        raise ImageFileError(f"{path} contains two files with the same name")
    return members


def tar_members(path: Path, problems: list[Problem]) -> Iterator[tuple[str, TarMember]]:
    """Yield the files in a tar with their names, in order; add what is wrong with it to `problems`."""
    try:
        with path.open("rb") as file, tarfile.open(fileobj=_Headers(file), mode="r:") as archive:  # type: ignore[call-overload]
            for info in _headers(archive):
                name = encodable(info.name)
                if info.isreg() and not info.issparse():
                    yield name, TarMember(path, info.offset_data, info.size)
                elif not info.isdir():
                    problems.append(Problem(f"{path.name}/{name}", "this is not a regular file"))
            if _read(path, archive.offset, tarfile.BLOCKSIZE) != tarfile.NUL * tarfile.BLOCKSIZE:
                raise tarfile.ReadError("a header is damaged")  # tarfile stops without an error
    except Exception as error:  # tarfile raises anything on damaged bytes
        hint = "; random access requires an uncompressed tar" if path.suffix != ".tar" else ""
        problems.append(Problem(path.name, f"the tar is damaged or truncated ({error}){hint}"))


def tar_contents(path: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Return the wanted files of a tar, gzipped or not; `read_decompressed` limits the memory."""
    content, found = read_decompressed(path), {}
    with reading(f"{path} as a tar"), tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for info in _headers(archive):
            if info.isreg() and wanted(info.name):
                found[info.name] = bytes(content[info.offset_data : info.offset_data + info.size])
    return found


def _headers(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the headers of a tar; negative sizes would make tarfile loop forever."""
    before = -1
    for info in archive:
        archive.members = []  # type: ignore[attr-defined]  # it would keep them all
        if info.size < 0 or info.offset <= before:
            raise tarfile.ReadError("a header has a negative size")
        before = info.offset
        yield info


class _Headers:
    """A file for reading headers only, of limited size."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.close = file.seek, file.tell, file.close
        self.name = file.name

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header has {size} bytes")
        return self._file.read(size)


def _read(path: Path, start: int, size: int) -> bytes:
    with reading(path, (OSError, ValueError, OverflowError)), path.open("rb") as file:
        file.seek(start)
        content = file.read(size)
    if len(content) != size:
        raise ImageFileError(f"{path} is truncated: {size} bytes at {start} are missing")
    return content


def is_gzipped(path: Path) -> bool:
    """Return whether a file starts like a gzip file."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def read_decompressed(path: Path) -> bytearray:
    """Return the content of a file, decompressed if it is gzipped, with one copy in memory."""
    content = bytearray()
    with (
        reading(path, (OSError, EOFError, zlib.error)),
        gzip.open(path) if is_gzipped(path) else path.open("rb") as file,
    ):
        while len(content) <= _MAX_DECOMPRESSED_BYTES and (chunk := file.read(CHUNK)):
            content += chunk
    check_at_most(path, len(content), _MAX_DECOMPRESSED_BYTES)
    return content

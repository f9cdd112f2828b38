"""Pictures that are files: in a folder, in a zip, in a tar.

Nothing is unpacked to the disk and no file stays open, so a data set can go to other threads and processes.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort._core.text import encodable
from beaufort.data._dataset import Problem
from beaufort.data._digest import Content, chunks_of
from beaufort.data.images import decode_image, flatten, read_decompressed, read_image

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ENCRYPTED = 0x1
_MOST_HEADER = 1 << 20
"""A header of a tar that announces more bytes is not read: they would be taken into memory."""


@dataclass(frozen=True)
class Files:
    """Files below a folder, by their relative paths."""

    root: Path
    names: Sequence[str]

    def read(self, index: int) -> Bytes:
        return decode_file(self.root / self.names[index])

    def contents(self, count: int) -> Iterator[Content]:
        return (OnDisk(self.root / name).content() for name in self.names[:count])


class Member(Protocol):
    """One picture's file, wherever it is."""

    def pixels(self) -> Bytes:
        """The picture."""

    def content(self) -> Content:
        """Its bytes, as stored."""


@dataclass(frozen=True)
class Members:
    """Files that are not all in one folder."""

    members: Sequence[Member]

    def read(self, index: int) -> Bytes:
        return self.members[index].pixels()

    def contents(self, count: int) -> Iterator[Content]:
        return (member.content() for member in self.members[:count])


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A file of its own."""

    path: Path

    def pixels(self) -> Bytes:
        return decode_file(self.path)

    def content(self) -> Content:
        return Content(lambda: chunks_of(self.path), self.path)


@dataclass(frozen=True, slots=True)
class Absent:
    """A file that is listed and cannot be read."""

    message: str

    def pixels(self) -> Bytes:
        raise ImageFileError(self.message)

    def content(self) -> Content:
        return Content(self._none)

    def _none(self) -> Iterator[bytes]:
        raise ImageFileError(self.message)


@dataclass(frozen=True, slots=True)
class TarMember:
    """A file in a tar that is not compressed."""

    archive: Path
    start: int
    size: int

    def read(self) -> bytes:
        if self.size > MOST_BYTES:
            raise ImageFileError(f"the file must have at most {MOST_BYTES:,} bytes, got {self.size:,}")
        return _read(self.archive, self.start, self.size)

    def pixels(self) -> Bytes:
        return decode(self.read())

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
            raise ImageFileError(
                "the file is encrypted, or compressed by an unsupported method; compress it again"
            )
        if max(self.size, self.packed_size) > MOST_BYTES:
            raise ImageFileError(f"the file must have at most {MOST_BYTES:,} bytes, got {self.size:,}")
        content = _read(self.archive, self.start(), self.packed_size)
        if self.method == zipfile.ZIP_DEFLATED:
            content = self._inflate(content)
        if len(content) != self.size or zlib.crc32(content) != self.crc:
            raise ImageFileError("the file is damaged: its checksum in the zip does not match")
        return content

    def start(self) -> int:
        """Where its bytes begin in the zip."""
        fields = _LOCAL_HEADER.unpack(_read(self.archive, self.header, _LOCAL_HEADER.size))
        if fields[0] != b"PK\3\4":
            raise ImageFileError("the zip is damaged: the file is not where its directory says")
        return self.header + _LOCAL_HEADER.size + int(fields[-2]) + int(fields[-1])

    def pixels(self) -> Bytes:
        return decode(self.read())

    def content(self) -> Content:
        return Content(lambda: [self.read()], self.archive, self.name)

    def _inflate(self, content: bytes) -> bytes:
        try:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, self.size + 1)
        except zlib.error as error:
            raise ImageFileError(f"the file is damaged ({error})") from None


def zip_members(path: Path) -> dict[str, ZipMember]:
    """The files in a zip by name, from its directory alone."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = [info for info in archive.infolist() if not info.is_dir()]
    except Exception as error:  # the module raises what it meets in damaged bytes
        raise ImageFileError(f"{path} cannot be read as a zip ({error})") from None
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
        raise ImageFileError(f"{path} must not contain two files of the same name")
    return members


def tar_members(path: Path, problems: list[Problem]) -> Iterator[tuple[str, TarMember]]:
    """The files in a tar with their names, in order; what is wrong with it is added to `problems`."""
    try:
        with path.open("rb") as file, tarfile.open(fileobj=_Headers(file), mode="r:") as archive:  # type: ignore[call-overload]
            before = -1
            for info in archive:
                archive.members = []  # it would keep them all
                if info.size < 0 or info.offset <= before:  # where the module itself would go round for ever
                    raise tarfile.ReadError("a header announces a file of a size below zero")
                before = info.offset
                name = encodable(info.name)
                if info.isreg() and not info.issparse():
                    yield name, TarMember(path, info.offset_data, info.size)
                elif not info.isdir():
                    problems.append(Problem(f"{path.name}/{name}", "this is not a regular file"))
            if _read(path, archive.offset, tarfile.BLOCKSIZE) != tarfile.NUL * tarfile.BLOCKSIZE:
                raise tarfile.ReadError("a header is damaged")  # where the module itself just stops
    except Exception as error:  # the module raises what it meets in damaged bytes
        hint = "; random access needs a tar that is not compressed" if path.suffix != ".tar" else ""
        problems.append(Problem(path.name, f"the tar is damaged or cut short ({error}){hint}"))


def tar_contents(path: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """The wanted files of a tar, gzipped or not, in memory, which `read_decompressed` bounds."""
    content, found, before = read_decompressed(path), {}, -1
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for info in archive:
                if info.size < 0 or info.offset <= before:  # where the module itself would go round for ever
                    raise tarfile.ReadError("a header announces a file of a size below zero")
                before = info.offset
                if info.isreg() and wanted(info.name):
                    found[info.name] = bytes(content[info.offset_data : info.offset_data + info.size])
    except Exception as error:  # the module raises what it meets in damaged bytes
        raise ImageFileError(f"{path} cannot be read as an archive ({error!s:.80})") from None
    return found


class _Headers:
    """A file of which only headers are read: what they announce does not fill the memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.close = file.seek, file.tell, file.close
        self.name = file.name

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MOST_HEADER:
            raise tarfile.ReadError(f"a header announces {size} bytes")
        return self._file.read(size)


def _read(path: Path, start: int, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            content = file.read(size)
    except (OSError, ValueError, OverflowError) as error:  # a place that no file has
        reason = getattr(error, "strerror", None) or error
        raise ImageFileError(f"{path} cannot be read ({reason})") from None
    if len(content) != size:
        raise ImageFileError(f"{path} is cut short: {size} bytes at {start} are missing")
    return content


MOST_BYTES = 1 << 28
"""A file in an archive that unpacks to more is not taken for a picture."""


def decode_file(path: Path) -> Bytes:
    """The picture in a file, `(h, w, 1 or 3)`."""
    return _as_array(read_image(path, upright=False))


def decode(content: bytes) -> Bytes:
    """The picture in the bytes of a file, `(h, w, 1 or 3)`; refused for what a file is refused for."""
    return _as_array(decode_image(content, upright=False))


def _as_array(image: Image.Image) -> Bytes:
    pixels = np.asarray(flatten(image))
    return pixels[..., None] if pixels.ndim == 2 else pixels

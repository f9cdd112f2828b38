"""The files that an ONNX file keeps its weights in, besides itself.

A tensor of an ONNX file may live in another file, named inside. Such a name comes from whoever made the
model, so it must stay in the model's folder. ONNX is read here as what it is, a protocol buffer, of which
only the parts on the way to a tensor are looked at: the core has no package that does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from beaufort.models._errors import ModelFileError

# message → field number → message inside; the numbers are those of onnx.proto
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
    "entry": {1: "text", 2: "text"},
}
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_DEEPEST = 64
_MOST_BYTES = 1 << 31
"""The most that a protocol buffer can have."""


def onnx_files(path: Path) -> list[Path]:
    """The file and all that it refers to, each inside its folder."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ModelFileError(f"{path} must have at most {_MOST_BYTES:,} bytes, the limit of ONNX files")
        named = set(_locations(memoryview(path.read_bytes()), "model"))
    except ModelFileError:
        raise
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read as an ONNX file ({error})") from None
    except (IndexError, RecursionError):
        raise ModelFileError(f"{path} is not an ONNX file, or is damaged") from None
    return [path, *(_inside(path, name) for name in sorted(named))]


def _inside(path: Path, name: str) -> Path:
    folder = path.resolve().parent
    if not _stays(folder, name):
        raise ModelFileError(
            f"{path} must keep its weights in its own folder, got {name!r}; put all files of the model into "
            "one folder"
        )
    found = folder / name
    if not found.is_file():
        raise ModelFileError(f"{path} keeps weights in {name!r}, which does not exist in its folder")
    return found


def _stays(folder: Path, name: str) -> bool:
    """Whether a name is that of a file in the folder, wherever links lead."""
    parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
    absolute = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor
    if not name or not name.isprintable() or absolute or ".." in parts:
        return False
    try:
        return (folder / name).resolve().is_relative_to(folder)
    except (OSError, RuntimeError, ValueError):  # too long, or a link that leads to itself
        return False


def _locations(message: memoryview, kind: str, depth: int = 0) -> Iterator[str]:
    """The value of every `location` entry of every tensor below a message."""
    if depth > _DEEPEST:
        raise RecursionError
    inside = _INSIDE[kind]
    for number, part in _fields(message):
        if number not in inside:
            continue
        if inside[number] == "entry":
            entry = {field: bytes(text).decode("utf-8", "replace") for field, text in _fields(part)}
            if entry.get(1) == "location":
                yield entry.get(2, "")
        else:
            yield from _locations(part, inside[number], depth + 1)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Number and content of every field of a message that has a length; the others are passed over."""
    place, end = 0, len(message)
    while place < end:
        key, place = _varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            _, place = _varint(message, place)
        elif kind == _FIXED_64:
            place += 8
        elif kind == _FIXED_32:
            place += 4
        elif kind == _BYTES:
            length, place = _varint(message, place)
            if place + length > end:
                raise IndexError
            yield key >> 3, message[place : place + length]
            place += length
        else:
            raise IndexError


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise IndexError

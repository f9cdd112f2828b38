"""The part of ONNX's file format that the core reads and writes, without the package `onnx`.

An ONNX file is a protocol buffer: fields, each with a number, one inside the other. A tensor may live in
another file, named inside; such a name comes from whoever made the model, so it must stay in the model's
folder. What is written is a feed-forward network of float32, byte for byte the same on every machine.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from beaufort.models.spec import ModelFileError

Attribute: TypeAlias = int | float | str | Sequence[int]

RESIZE = "beaufort.resize"
"""The entry of the metadata of a trained network: height and width that images are resized to, in JSON."""

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
_IR_VERSION, _OPSET = 8, 17
_FLOAT, _INT64 = 1, 7  # TensorProto.DataType
_DEEPEST = 64
_MOST_BYTES = 1 << 31
"""The most that a protocol buffer can have."""


def onnx_files(path: Path) -> list[Path]:
    """The file and all that it refers to, each inside its folder."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ModelFileError(f"{path} must have at most {_MOST_BYTES:,} bytes, the limit of ONNX files")
        named = set(_locations(memoryview(path.read_bytes()), "model"))
    except (IndexError, RecursionError):
        raise ModelFileError(f"{path} is not an ONNX file, or is damaged") from None
    return [path, *(_beside(path, name) for name in sorted(named))]


def _beside(path: Path, name: str) -> Path:
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
        key, place = _read_varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            _, place = _read_varint(message, place)
        elif kind == _FIXED_64:
            place += 8
        elif kind == _FIXED_32:
            place += 4
        elif kind == _BYTES:
            length, place = _read_varint(message, place)
            if place + length > end:
                raise IndexError
            yield key >> 3, message[place : place + length]
            place += length
        else:
            raise IndexError


def _read_varint(message: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise IndexError


@dataclass(frozen=True)
class Node:
    """One operation: what it reads, weights among it, and the one thing it makes."""

    operation: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


def onnx_bytes(
    name: str,
    nodes: Iterable[Node],
    weights: Mapping[str, NDArray[np.float32] | NDArray[np.int64]],
    *,
    image: tuple[int, int, int],
    classes: int,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """The file of a network from `image`, float32 `(n, c, h, w)`, to `logits`, `(n, classes)`.

    Args:
        name: of the graph.
        nodes: in an order in which they can be run; the first reads `image`, the last makes `logits`.
        weights: by the names that nodes read; float32, or int64 for places in a tensor.
        image: channels, height and width.
        classes: how many logits there are.
        metadata: what else the file says, by name.
    """
    graph = b"".join(
        (
            *(_inside(1, _node(node)) for node in nodes),
            _text(2, name),
            *(_inside(5, _tensor(key, value)) for key, value in weights.items()),
            _inside(11, _value("image", image)),
            _inside(12, _value("logits", (classes,))),
        )
    )
    opset = _text(1, "") + _number(2, _OPSET)
    said = b"".join(_inside(14, _text(1, key) + _text(2, value)) for key, value in (metadata or {}).items())
    return _number(1, _IR_VERSION) + _text(2, "beaufort") + _inside(7, graph) + _inside(8, opset) + said


def _node(node: Node) -> bytes:
    parts = [_text(1, name) for name in node.inputs]
    parts += [_text(2, node.output), _text(3, node.output), _text(4, node.operation)]
    parts += [_inside(5, _text(1, name) + _attribute(value)) for name, value in node.attributes.items()]
    return b"".join(parts)


def _attribute(value: Attribute) -> bytes:
    """The value and, in field 20, which kind of value it is."""
    if isinstance(value, str):
        return _text(4, value) + _number(20, 3)
    if isinstance(value, float):
        return _varint(2 << 3 | _FIXED_32) + struct.pack("<f", value) + _number(20, 1)
    if isinstance(value, int):
        return _number(3, value) + _number(20, 2)
    return b"".join(_number(8, one) for one in value) + _number(20, 7)


def _tensor(name: str, value: NDArray[np.float32] | NDArray[np.int64]) -> bytes:
    kind, order = {"float32": (_FLOAT, "<f4"), "int64": (_INT64, "<i8")}[value.dtype.name]
    dims = b"".join(_number(1, side) for side in value.shape)
    content = np.asarray(value, order, order="C").tobytes()
    return dims + _number(2, kind) + _text(8, name) + _inside(9, content)


def _value(name: str, sides: Sequence[int]) -> bytes:
    """An input or output; its first side is however many images there are."""
    dims = _inside(1, _text(2, "n")) + b"".join(_inside(1, _number(1, side)) for side in sides)
    return _text(1, name) + _inside(2, _inside(1, _number(1, _FLOAT) + _inside(2, dims)))


def _inside(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _inside(number, text.encode())


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value % 2**64)  # negative ones in two's complement


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first.

    >>> _varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])

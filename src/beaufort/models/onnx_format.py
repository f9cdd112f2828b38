"""Reading and writing the part of the ONNX format that Beaufort needs, without the package `onnx`.

An ONNX file is a protocol buffer: numbered fields, nested. A tensor may be stored in another file, whose name
comes from the author of the model, so it must stay in the model's folder. What is written is a feed-forward
network of float32, with the same bytes on every machine.
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
"""Metadata key of trained networks: height and width that images are resized to, as JSON."""

# message → field number → nested message; the numbers are those of onnx.proto
_NESTED: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_IR_VERSION, _OPSET = 8, 17
_FLOAT, _INT64 = 1, 7  # TensorProto.DataType
_MAX_DEPTH = 64
_MAX_BYTES = 1 << 31
"""Limit of protocol buffers."""


def onnx_files(path: Path) -> list[Path]:
    """Return the file and all files that it refers to, which must be in its folder."""
    if path.stat().st_size > _MAX_BYTES:
        raise ModelFileError(f"{path} must have at most {_MAX_BYTES:,} bytes, the limit of ONNX files")
    try:
        names = sorted(set(_locations(memoryview(path.read_bytes()), "model")))
    except (IndexError, RecursionError):
        raise ModelFileError(f"{path} is not an ONNX file, or is damaged") from None
    folder = path.resolve().parent
    for name in names:
        if not _stays_in(folder, name):
            raise ModelFileError(
                f"{path} keeps weights outside of its folder, in {name!r}; move them into it"
            )
        if not (folder / name).is_file():
            raise ModelFileError(f"weights of {path} not found in its folder: {name!r}")
    return [path, *(folder / name for name in names)]


def _stays_in(folder: Path, name: str) -> bool:
    """Whether a name is that of a file in the folder, with links resolved."""
    parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
    absolute = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor
    if not name or not name.isprintable() or absolute or ".." in parts:
        return False
    try:
        return (folder / name).resolve().is_relative_to(folder)
    except (OSError, RuntimeError, ValueError):  # too long, or a link to itself
        return False


def _locations(message: memoryview, kind: str, depth: int = 0) -> Iterator[str]:
    """Yield the entry `location` of every tensor in a message."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    for number, part in _fields(message):
        nested = _NESTED[kind].get(number)
        if nested == "entry":
            entry = {key: bytes(text).decode("utf-8", "replace") for key, text in _fields(part)}
            if entry.get(1) == "location":
                yield entry.get(2, "")
        elif nested is not None:
            yield from _locations(part, nested, depth + 1)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield number and content of every length-delimited field of a message."""
    position, end = 0, len(message)
    while position < end:
        key, position = _read_varint(message, position)
        kind = key & 7
        if kind == _VARINT:
            _, position = _read_varint(message, position)
        elif kind == _FIXED_64:
            position += 8
        elif kind == _FIXED_32:
            position += 4
        else:
            length, position = _read_varint(message, position)
            if kind != _BYTES or position + length > end:
                raise IndexError
            yield key >> 3, message[position : position + length]
            position += length


def _read_varint(message: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
    raise IndexError


@dataclass(frozen=True)
class Node:
    """One operation: its inputs, among them weights, and its output."""

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
    """Return the file of a network from `image`, float32 `(n, c, h, w)`, to `logits`, `(n, classes)`.

    Args:
        name: name of the graph.
        nodes: operations in order; the first reads `image`, the last writes `logits`.
        weights: arrays by the names that nodes read; float32, or int64 for indices.
        image: channels, height and width.
        classes: number of logits.
        metadata: entries of the metadata.
    """
    graph = [
        *(_field(1, _node(node)) for node in nodes),
        _field(2, name),
        *(_field(5, _tensor(key, value)) for key, value in weights.items()),
        _field(11, _value("image", image)),
        _field(12, _value("logits", (classes,))),
    ]
    parts = [
        _field(1, _IR_VERSION),
        _field(2, "beaufort"),
        _field(7, b"".join(graph)),
        _field(8, _field(1, "") + _field(2, _OPSET)),
        *(_field(14, _field(1, key) + _field(2, value)) for key, value in (metadata or {}).items()),
    ]
    return b"".join(parts)


def _node(node: Node) -> bytes:
    parts = [_field(1, name) for name in node.inputs]
    parts += [_field(2, node.output), _field(3, node.output), _field(4, node.operation)]
    parts += [_field(5, _field(1, name) + _attribute(value)) for name, value in node.attributes.items()]
    return b"".join(parts)


def _attribute(value: Attribute) -> bytes:
    """Encode the value and, in field 20, its type."""
    for number, kind, type_ in ((4, str, 3), (2, float, 1), (3, int, 2)):
        if isinstance(value, kind):
            return _field(number, value) + _field(20, type_)
    assert isinstance(value, Sequence)
    return b"".join(_field(8, item) for item in value) + _field(20, 7)


def _tensor(name: str, value: NDArray[np.float32] | NDArray[np.int64]) -> bytes:
    kind, order = {"float32": (_FLOAT, "<f4"), "int64": (_INT64, "<i8")}[value.dtype.name]
    dims = b"".join(_field(1, side) for side in value.shape)
    content = np.asarray(value, order, order="C").tobytes()
    return dims + _field(2, kind) + _field(8, name) + _field(9, content)


def _value(name: str, sides: Sequence[int]) -> bytes:
    """Encode an input or output; its first side is the variable batch size."""
    dims = _field(1, _field(2, "n")) + b"".join(_field(1, _field(1, side)) for side in sides)
    return _field(1, name) + _field(2, _field(1, _field(1, _FLOAT) + _field(2, dims)))


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, float):
        return _varint(number << 3 | _FIXED_32) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value % 2**64)  # two's complement
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Encode seven bits per byte, the lowest first.

    >>> _varint(300).hex()
    'ac02'
    """
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])

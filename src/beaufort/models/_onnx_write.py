"""Networks written down as ONNX files, without the package `onnx`, which the core does not have.

An ONNX file is a protocol buffer: fields, each with a number, one inside the other. What is written here is
the part that a feed-forward network of float32 needs, byte for byte the same on every machine.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Attribute: TypeAlias = int | float | str | Sequence[int]

_IR_VERSION, _OPSET = 8, 17
_FLOAT, _INT64 = 1, 7  # TensorProto.DataType
_VARINT, _BYTES, _FIXED_32 = 0, 2, 5


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

"""Reading plain values from a pickle without unpickling it, because unpickling can run any program.

A pickle is a program for a stack machine. Only instructions that build plain values are executed; where one
would import or call something, an `Inert` takes its place.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

_MOST_STEPS = 5_000_000
"""Limit against denial of service; a batch of 50,000 images has 300,000 instructions."""
_MARK = object()


class PickleError(ValueError):
    """An invalid pickle, or one with values that are not plain."""


@dataclass(frozen=True)
class Inert:
    """Placeholder of a call that was not made, with its arguments."""

    parts: tuple[Any, ...]


@dataclass
class _Machine:
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def pop_to_mark(self) -> list[Any]:
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise PickleError("invalid pickle: missing mark")
        found = self.stack[at + 1 :]
        del self.stack[at:]
        return found

    def pop(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise PickleError("invalid pickle: missing value")
        found = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return found

    def set_items(self, pairs: list[Any]) -> None:
        if isinstance(self.stack[-1], dict):
            self.stack[-1].update(self.dict_of(pairs))

    @staticmethod
    def dict_of(pairs: list[Any]) -> dict[Any, Any]:
        """Return the pairs as a dict, without keys that are not strings, bytes or numbers."""
        keyed = zip(pairs[::2], pairs[1::2], strict=True)
        return {key: value for key, value in keyed if isinstance(key, (str, bytes, int, float))}

    def append(self, values: list[Any]) -> None:
        if isinstance(self.stack[-1], list):
            self.stack[-1].extend(values)


_Step = Callable[[_Machine, Any], None]


def _uncalled(function: Any, arguments: Any) -> Any:
    """Return the placeholder of a call; old protocols write bytes as a call of `_codecs.encode`."""
    match function, arguments:
        case Inert(parts=("_codecs encode",)), (str() as text, "latin1"):
            return text.encode("latin-1")
    return Inert((function, arguments))


def _push(make: Callable[[_Machine, Any], Any]) -> _Step:
    return lambda machine, argument: machine.stack.append(make(machine, argument))


_NOTHING: _Step = lambda _, __: None  # noqa: E731
_CALL = _push(lambda machine, _: _uncalled(*machine.pop(2)))
_KEEP: _Step = lambda machine, place: machine.memo.__setitem__(place, machine.stack[-1])  # noqa: E731
_RECALL = _push(lambda machine, place: machine.memo[place])
_VALUE = _push(lambda _, argument: argument)

_STEPS: dict[str, _Step] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), _NOTHING),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _KEEP),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _RECALL),
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"), _VALUE),
    **dict.fromkeys(("STRING", "BINSTRING", "SHORT_BINSTRING", "FLOAT", "BINFLOAT"), _VALUE),
    **dict.fromkeys(("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), _VALUE),
    **dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"), _VALUE),
    **dict.fromkeys(("REDUCE", "STACK_GLOBAL", "NEWOBJ", "BUILD"), _CALL),
    "MEMOIZE": lambda machine, _: machine.memo.__setitem__(len(machine.memo), machine.stack[-1]),
    "GLOBAL": _push(lambda _, name: Inert((name,))),
    "MARK": _push(lambda _, __: _MARK),
    "NONE": _push(lambda _, __: None),
    "NEWTRUE": _push(lambda _, __: True),
    "NEWFALSE": _push(lambda _, __: False),
    "EMPTY_DICT": _push(lambda _, __: {}),
    "EMPTY_LIST": _push(lambda _, __: []),
    "EMPTY_TUPLE": _push(lambda _, __: ()),
    "DICT": _push(lambda machine, _: machine.dict_of(machine.pop_to_mark())),
    "LIST": _push(lambda machine, _: machine.pop_to_mark()),
    "TUPLE": _push(lambda machine, _: tuple(machine.pop_to_mark())),
    "TUPLE1": _push(lambda machine, _: tuple(machine.pop(1))),
    "TUPLE2": _push(lambda machine, _: tuple(machine.pop(2))),
    "TUPLE3": _push(lambda machine, _: tuple(machine.pop(3))),
    "APPEND": lambda machine, _: machine.append(machine.pop(1)),
    "APPENDS": lambda machine, _: machine.append(machine.pop_to_mark()),
    "SETITEM": lambda machine, _: machine.set_items(machine.pop(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.pop_to_mark()),
}


def read_pickle(content: bytes | bytearray) -> Any:
    r"""Return the dicts, lists, tuples, numbers, strings and bytes of a pickle; `Inert` for all else.

    >>> read_pickle(b"\x80\x02}U\x06labels]K\x03as.")
    {'labels': [3]}
    """
    machine = _Machine()
    try:
        steps = 0
        for step, argument, _ in islice(pickletools.genops(content), _MOST_STEPS):
            steps += 1
            if step.name not in _STEPS:
                raise PickleError(f"the pickle holds more than plain values (instruction {step.name})")
            _STEPS[step.name](machine, argument)
        if steps == _MOST_STEPS:
            raise PickleError(f"the pickle has more than {_MOST_STEPS:,} instructions")
        (found,) = machine.stack
    except PickleError:
        raise
    except Exception as error:  # pickletools raises many kinds for damaged bytes
        raise PickleError(f"invalid pickle: {error!s:.80}") from None
    return found


def bytes_in(value: Any, depth: int = 6) -> bytes:
    """Return the longest bytes in a value from `read_pickle`: the data of an array.

    Pickles of Python 2 store them as text, one byte per character.
    """
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode("latin-1", "ignore")
    parts = value.parts if isinstance(value, Inert) else value if isinstance(value, (list, tuple)) else ()
    return max((bytes_in(part, depth - 1) for part in parts), key=len, default=b"") if depth else b""


def longest_bytes(content: bytes) -> bytes:
    """Return the longest bytes among the arguments of a pickle's instructions, without executing them."""
    found = [argument for _, argument, _ in pickletools.genops(content) if isinstance(argument, bytes)]
    return max(found, key=len, default=b"")

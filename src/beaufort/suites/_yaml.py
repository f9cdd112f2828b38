"""A suite's YAML as plain values, with the line of each.

Nodes are composed and never constructed: no tag is followed, no alias is expanded, and nothing is made but
str, int, float, bool, None, list and dict.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from beaufort.suites._schema import BROKEN, Where, key_of

MAX_BYTES = 100_000
_MAX_VALUES = 2_000

_INT = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")
_TAGS = {"null", "bool", "int", "float", "str", "seq", "map", "timestamp", "merge", "value"}
"""Of plain values, which need no tag."""


class _Stop(Exception):  # noqa: N818
    """The rest cannot be read: a line and why."""


class Document:
    """The values of a file, where they stand, and what is wrong with its form."""

    def __init__(self, content: bytes) -> None:
        self.values: dict[str, Any] | None = None
        """None if the form is so wrong that there is nothing to look at."""
        self.mistakes: list[tuple[int, str, str]] = []
        """Line, key and message."""
        self._lines: dict[Where, int] = {}
        self._seen: set[int] = set()
        try:
            self.values = self._read(content)
        except _Stop as stop:
            line, message = stop.args
            self.mistakes.append((line, "", message))

    def line(self, where: Where) -> int:
        """The line of a value, or of the nearest thing that it is in."""
        while where not in self._lines and where:
            where = where[:-1]
        return self._lines.get(where, 1)

    def _read(self, content: bytes) -> dict[str, Any] | None:
        root = _compose(_decode(content))
        value = None if root is None else self._value(root, ())
        if value is BROKEN:
            return None
        if root is None or value is None:
            raise _Stop(1, "the file is empty; a suite starts with a line such as 'name: my-suite'")
        if not isinstance(value, dict):
            kind = "a list" if isinstance(value, list) else "a text"
            wanted = "a suite must consist of lines 'key: value', such as 'name: my-suite'"
            raise _Stop(_line(root), f"{wanted}, got {kind}")
        return value

    def _value(self, node: yaml.Node, where: Where) -> Any:
        if id(node) in self._seen:
            self._note(node, "aliases are not supported; write the value out", where)
            return BROKEN
        self._seen.add(id(node))
        self._lines.setdefault(where, _line(node))
        if len(self._seen) > _MAX_VALUES:
            raise _Stop(_line(node), f"there are more than {_MAX_VALUES} values; a suite has fewer")
        if (tag := node.tag.removeprefix("tag:yaml.org,2002:")) not in _TAGS:
            self._note(node, f"tags are not supported, got {node.tag!r:.60}; write a plain value", where)
            return BROKEN
        if isinstance(node, yaml.SequenceNode):
            values = [self._value(one, (*where, number)) for number, one in enumerate(node.value)]
            return BROKEN if BROKEN in values else values
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        return _scalar(node.value, tag)

    def _mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node.value, key_node.tag.rpartition(":")[2])
            if not isinstance(key, str) or not isinstance(key_node, yaml.ScalarNode):
                self._note(key_node, f"a key must be text, got {key!r:.60}", where)
            elif key in values:
                first = self._lines[*where, key]
                self._note(key_node, f"duplicate key; it is on line {first} already", (*where, key))
            else:
                self._lines[*where, key] = _line(key_node)
                values[key] = self._value(value_node, (*where, key))
        return values

    def _note(self, node: yaml.Node, message: str, where: Where) -> None:
        self.mistakes.append((_line(node), key_of(where), message))


def _decode(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise _Stop(1, f"the file has more than {MAX_BYTES} bytes; a suite is a short list of names")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _Stop(line, "this is not UTF-8 text; save the file as UTF-8") from None


def _compose(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, yaml.SafeLoader)
    except RecursionError:
        raise _Stop(1, "this is nested too deeply; a suite has keys, and lists of names") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise _Stop(1 if mark is None else mark.line + 1, f"this is not YAML: {said}") from None
    except yaml.reader.ReaderError as error:
        code = ord(error.character) if isinstance(error.character, str) else error.character
        line = text[: error.position].count("\n") + 1
        raise _Stop(line, f"the character U+{code:04X} is not allowed in YAML; remove it") from None
    except yaml.YAMLError as error:
        raise _Stop(1, f"this is not YAML: {error}") from None


def _line(node: yaml.Node) -> int:
    assert node.start_mark is not None  # only nodes made by hand have none
    return node.start_mark.line + 1


def _scalar(text: Any, tag: str) -> Any:
    if tag == "null":
        return None
    if tag == "bool":
        return text.lower() in ("yes", "true", "on")
    if tag == "int" and _INT.fullmatch(text):
        return int(text)
    if tag == "float" and len(text) < 40:
        try:
            return float(text)
        except ValueError:
            return text
    return text

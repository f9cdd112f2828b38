"""A suite's YAML as plain values, with the line of each.

Nodes are composed and never constructed: no tag is followed, no alias is expanded, and nothing is made but
str, int, float, bool, None, list and dict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from beaufort.suites._schema import Where, key_of
from beaufort.suites.suite import Mistake, SuiteError

MAX_BYTES = 100_000
_MAX_VALUES = 2_000

_INT = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")
_TAGS = {"null", "bool", "int", "float", "str", "seq", "map", "timestamp", "merge", "value"}
"""Of plain values, which need no tag."""


def read_yaml(
    content: bytes, source: str, *, published: bool = False
) -> tuple[dict[str, Any], Mapping[Where, int]]:
    """Return the values of a file and their lines; a `SuiteError` names the first unreadable line.

    Published suites are parsed by libyaml, which is faster, but may crash on text that is nested too deeply.
    """
    reader = _Reader(source, getattr(yaml, "CSafeLoader", yaml.SafeLoader) if published else yaml.SafeLoader)
    return reader.read(content), reader.lines


class _Reader:
    def __init__(self, source: str, loader: Any) -> None:
        self.source = source
        self.loader = loader
        self.lines: dict[Where, int] = {}
        self._seen: set[int] = set()

    def read(self, content: bytes) -> dict[str, Any]:
        root = self._compose(self._decode(content))
        value = None if root is None else self._value(root, ())
        if root is None or value is None:
            raise self._error(1, "the file is empty; a suite starts with a line such as 'name: my-suite'")
        if not isinstance(value, dict):
            kind = "a list" if isinstance(value, list) else "text"
            message = f"a suite must consist of lines 'key: value', such as 'name: my-suite', got {kind}"
            raise self._error(root, message)
        return value

    def _error(self, at: yaml.Node | int, message: str, where: Where = ()) -> SuiteError:
        line = at if isinstance(at, int) else _line(at)
        return SuiteError(self.source, [Mistake(line, key_of(where), message)])

    def _decode(self, content: bytes) -> str:
        if len(content) > MAX_BYTES:
            raise self._error(
                1, f"the file has more than {MAX_BYTES} bytes; a suite is a short list of names"
            )
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise self._error(line, "this is not UTF-8 text; save the file as UTF-8") from None

    def _compose(self, text: str) -> yaml.Node | None:
        try:
            return yaml.compose(text, self.loader)
        except RecursionError:
            raise self._error(1, "this is nested too deeply; a suite has keys, and lists of names") from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            cause = ", ".join(part for part in (error.context, error.problem) if part)
            raise self._error(1 if mark is None else mark.line + 1, f"this is not YAML: {cause}") from None
        except yaml.reader.ReaderError as error:
            code = ord(error.character) if isinstance(error.character, str) else error.character
            line = text[: error.position].count("\n") + 1
            message = f"the character U+{code:04X} is not allowed in YAML; remove it"
            raise self._error(line, message) from None

    def _value(self, node: yaml.Node, where: Where) -> Any:
        if id(node) in self._seen:
            raise self._error(node, "aliases are not supported; write the value out", where)
        self._seen.add(id(node))
        self.lines.setdefault(where, _line(node))
        if len(self._seen) > _MAX_VALUES:
            raise self._error(node, f"a suite must have at most {_MAX_VALUES} values")
        if (tag := node.tag.removeprefix("tag:yaml.org,2002:")) not in _TAGS:
            message = f"tags are not supported, got {node.tag!r:.60}; write a plain value"
            raise self._error(node, message, where)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(one, (*where, number)) for number, one in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        return _scalar(node.value, tag)

    def _mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node.value, key_node.tag.rpartition(":")[2])
            if not isinstance(key, str) or not isinstance(key_node, yaml.ScalarNode):
                raise self._error(key_node, f"a key must be text, got {key!r:.60}", where)
            if key in values:
                first = self.lines[*where, key]
                raise self._error(key_node, f"duplicate key, first used on line {first}", (*where, key))
            self.lines[*where, key] = _line(key_node)
            values[key] = self._value(value_node, (*where, key))
        return values


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

"""A suite's YAML as plain values, with the line of each.

Only plain YAML is read: texts, numbers, lists and keys. The parser's events are looked at one by one;
no tag is followed, no alias is expanded, and nothing is made but str, int, float, bool, None, list
and dict.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml

from beaufort.suites._check import BROKEN, Where
from beaufort.suites._mistakes import Mistake

MAX_BYTES = 100_000
_MAX_DEPTH = 8
_MAX_VALUES = 2_000

_INT = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")


class _Stop(Exception):  # noqa: N818
    """What follows cannot be read; the mistake is noted."""


class Document:
    """The values of a file, where they stand, and what is wrong with its form."""

    def __init__(self) -> None:
        self.values: dict[str, Any] | None = None
        """None if the form is so wrong that there is nothing to look at."""
        self.lines: dict[Where, int] = {}
        self.mistakes: list[Mistake] = []

    def line(self, where: Where) -> int:
        """The line of a value, or of the nearest thing that it is in."""
        while where not in self.lines and where:
            where = where[:-1]
        return self.lines.get(where, 1)


def read_yaml(content: bytes) -> Document:
    r"""Read what a file holds; mistakes are noted, never raised.

    >>> read_yaml(b"name: a\nseverities: [1, 2]").values
    {'name': 'a', 'severities': [1, 2]}
    """
    document = Document()
    try:
        _Reader(_decode(content, document), document).read()
    except _Stop:
        document.values = None
    except yaml.YAMLError as error:
        document.values = None
        document.mistakes.append(_syntax(error, content))
    return document


def _decode(content: bytes, document: Document) -> str:
    if len(content) > MAX_BYTES:
        _stop(document, 1, f"the file has more than {MAX_BYTES} bytes; a suite is a short list of names")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _stop(
            document,
            content.count(b"\n", 0, error.start) + 1,
            "this is not UTF-8 text; save the file as UTF-8",
        )


def _stop(document: Document, line: int, message: str) -> NoReturn:
    document.mistakes.append(Mistake(line, "", message))
    raise _Stop


def _syntax(error: yaml.YAMLError, content: bytes) -> Mistake:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        return Mistake(1 if mark is None else mark.line + 1, "", f"this is not YAML: {said}")
    if isinstance(error, yaml.reader.ReaderError):
        before = content.decode("utf-8-sig")[: error.position]
        code = ord(error.character) if isinstance(error.character, str) else error.character
        return Mistake(
            before.count("\n") + 1, "", f"the character U+{code:04X} may not stand in YAML; remove it"
        )
    return Mistake(1, "", f"this is not YAML: {error}")


class _Reader:
    """Builds values from the parser's events."""

    def __init__(self, text: str, document: Document) -> None:
        self._loader: Any = yaml.SafeLoader(text)
        self._document = document
        self._count = 0

    def _next(self) -> yaml.Event:
        event: yaml.Event = self._loader.get_event()
        return event

    def _note(self, event: yaml.Event, message: str, key: str = "") -> None:
        self._document.mistakes.append(Mistake(_line(event), key, message))

    def read(self) -> None:
        """The one document that the file should be."""
        self._next()  # the stream starts
        if isinstance(event := self._next(), yaml.StreamEndEvent):
            _stop(self._document, 1, _EMPTY)
        first = self._next()
        value = self._value(first, (), 0)
        self._next()  # the document ends
        if not isinstance(event := self._next(), yaml.StreamEndEvent):
            _stop(self._document, _line(event), "a second document starts here; a file holds one suite")
        if value is BROKEN:
            raise _Stop
        if value is None:
            _stop(self._document, 1, _EMPTY)
        if not isinstance(value, dict):
            kind = "a list" if isinstance(value, list) else "a text"
            _stop(
                self._document,
                _line(first),
                f"a suite must consist of lines 'key: value', such as 'name: my-suite', got {kind}",
            )
        self._document.lines[()] = _line(first)
        self._document.values = value

    def _value(self, event: yaml.Event, where: Where, depth: int) -> Any:
        self._count += 1
        key = str(where[0]) if where else ""
        if self._count > _MAX_VALUES:
            _stop(
                self._document, _line(event), f"there are more than {_MAX_VALUES} values; a suite has fewer"
            )
        if depth > _MAX_DEPTH:
            _stop(
                self._document,
                _line(event),
                "this is nested too deeply; a suite has keys, and lists of names",
            )
        self._document.lines.setdefault(where, _line(event))
        if isinstance(event, yaml.AliasEvent):
            self._note(
                event, f"aliases are not supported, got '*{event.anchor:.40}'; write the value out", key
            )
            return BROKEN
        sound = self._plain(event, key)
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._list(where, depth)
        else:
            value = self._dict(where, depth)
        return value if sound else BROKEN

    def _plain(self, event: yaml.Event, key: str) -> bool:
        """Whether a value has neither tag nor anchor."""
        tag, anchor = getattr(event, "tag", None), getattr(event, "anchor", None)
        if tag is not None and tag != "!":
            self._note(event, f"tags are not supported, got {tag!r:.60}; write a plain value", key)
        if anchor is not None:
            self._note(event, f"anchors are not supported, got '&{anchor:.40}'; write each value out", key)
        return tag in (None, "!") and anchor is None

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        match self._loader.resolve(yaml.ScalarNode, text, event.implicit).rpartition(":")[2]:
            case "null":
                return None
            case "bool":
                return text.lower() in ("yes", "true", "on")
            case "int" if _INT.fullmatch(text):
                return int(text)
            case "float" if len(text) < 40:
                return _number(text)
        return text

    def _list(self, where: Where, depth: int) -> Any:
        values: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            values.append(self._value(event, (*where, len(values)), depth + 1))
        return BROKEN if BROKEN in values else values

    def _dict(self, where: Where, depth: int) -> Any:
        values: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._value(event, (*where, ""), depth + 1)
            del self._document.lines[*where, ""]
            sound = isinstance(key, str)
            name = key if sound else ""
            if not sound and key is not BROKEN:
                self._note(event, f"a key must be text, got {key!r:.60}")
            elif name in values:
                first = self._document.lines[*where, name]
                self._note(event, f"duplicate key; it is on line {first} already", name)
                sound = False
            else:
                self._document.lines[*where, name] = _line(event)
            value = self._value(self._next(), (*where, name), depth + 1)
            if sound:
                values[name] = value
        return values


def _line(event: yaml.Event) -> int:
    assert event.start_mark is not None  # only events made by hand have none
    return event.start_mark.line + 1


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_EMPTY = "the file is empty; a suite starts with a line such as 'name: my-suite'"

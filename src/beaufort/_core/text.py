"""Formatting of counts, durations and sizes, and sanitizing of untrusted text.

File names, responses of a service, URLs and command lines may contain escape sequences, lone surrogates or
secrets. Printed text goes through `printable`; stored text and error messages go through `without_secrets`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

# The text is untrusted: patterns start with a literal and have bounded repeats, so that matching stays fast.
_ADDRESS = re.compile(r"://(?P<rest>[^\s\"'<>`]+)")
_NAMED = re.compile(
    r"(?i)((?:token|secret|password|passwd|api[_-]?key|access[_-]?key|credential)[\w.-]{0,40}=)[^\s\"',;&)]+"
)
_BEARER = re.compile(r"(?i)\b((?:bearer|basic)\s{1,9})[A-Za-z0-9._~+/=-]{8,}")
_HIDDEN = "…"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def printable(text: Any, *, keep: str = "") -> str:
    r"""Return text without control characters and lone surrogates.

    >>> printable("a\x1b[31m\n")
    'a\\x1b[31m\\n'

    Args:
        text: any object, converted with `str`.
        keep: characters to keep, such as "\n" in text of several lines.
    """
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape", "surrogatepass").decode()
        for c in str(text)
    )


def without_secrets(text: str) -> str:
    """Return text without credentials.

    The user, password and query of a URL are removed; so are the values of `token=…`, `api_key=…` and the
    like, and of `Bearer …`.

    >>> without_secrets("no response from http://me:secret@host:80/classify?key=1234")
    'no response from http://host:80/classify'
    >>> without_secrets("--set token=HOUSE_TOKEN")
    '--set token=…'
    """
    text = _ADDRESS.sub(_bare_address, text)
    text = _NAMED.sub(rf"\g<1>{_HIDDEN}", text)
    return _BEARER.sub(rf"\g<1>{_HIDDEN}", text)


def command_without_secrets(words: Iterable[object]) -> list[str]:
    """Return the words of a command line without credentials."""
    return [printable(without_secrets(str(word))) for word in words]


def without_folders(text: str) -> str:
    """Return a word of a command line without the directories of absolute paths; URLs stay.

    >>> without_folders("--data=/home/me/photos"), without_folders("csv:/data/x#test"), without_folders("a/b")
    ('--data=photos', 'csv:x#test', 'a/b')
    """
    option, equals, value = text.partition("=") if text.startswith("-") else ("", "", text)
    value = re.sub(r"^file:/+", "/", value)
    if _URL.match(value):
        return without_secrets(text)
    kind, colon, path = value.partition(":")
    if colon and len(kind) > 1 and _absolute(path):
        return f"{option}{equals}{kind}:{_base(path)}"
    return f"{option}{equals}{_base(value) if _absolute(value) else value}"


def _absolute(text: str) -> bool:
    return text.startswith(("/", "~")) or PureWindowsPath(text).is_absolute()


def _base(text: str) -> str:
    path = PurePosixPath(text) if text.startswith(("/", "~")) else PureWindowsPath(text)
    return path.name or "/"


def _bare_address(match: re.Match[str]) -> str:
    place, mark, rest = _partition(match["rest"])
    server, slash, path = place.partition("/")
    fragment = ""
    if mark == "#" and "=" not in rest and "?" not in rest:  # a part of a dataset, such as `#test`
        fragment = f"#{rest}"
    return f"://{server.rpartition('@')[2]}{slash}{path}{fragment}"


def _partition(text: str) -> tuple[str, str, str]:
    """Split at the first `?` or `#`."""
    found = re.search(r"[?#]", text)
    return (text, "", "") if found is None else (text[: found.start()], found[0], text[found.end() :])


def encodable(text: str) -> str:
    r"""Return text that UTF-8 can encode: undecodable bytes are escaped.

    >>> encodable("caf\udce9.png"), encodable("\ud83d")
    ('caf\\xe9.png', '\\ud83d')
    """
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # Python's surrogate escape of an undecodable byte
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if 0xD800 <= code <= 0xDFFF else character


def spreadsheet_cell(text: str) -> str:
    """Return text that a spreadsheet does not interpret as a formula.

    >>> spreadsheet_cell("=1+1"), spreadsheet_cell("resnet50")
    ("'=1+1", 'resnet50')
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "model"), counted(1000, "image")
    ('1 model', '1,000 images')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Return a duration in a readable unit.

    >>> duration(1), duration(300), duration(9000)
    ('1 second', '5 minutes', '2.5 hours')
    """
    if seconds < 90:
        return counted(round(seconds), "second")
    return counted(round(seconds / 60), "minute") if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def byte_size(size: float) -> str:
    """Return a file size in a readable unit.

    >>> byte_size(812), byte_size(20_400), byte_size(1_234_567), byte_size(147e9)
    ('812 bytes', '20.4 kB', '1.2 MB', '147.0 GB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return counted(round(size), "byte")


def comma_list(text: str) -> list[str]:
    """Return the names in a comma-separated text.

    >>> comma_list("fog, snow")
    ['fog', 'snow']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV.

    >>> csv_text(["model", "error"], [("a, b", 0.5)]).splitlines()
    ['model,error', '"a, b",0.5']
    """
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([head, *rows])
    return file.getvalue()

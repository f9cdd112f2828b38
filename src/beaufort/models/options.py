"""What a caller may say about a model beyond where it is, as values or as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown
from beaufort.data.labels import class_lists, class_names
from beaufort.models.preprocessing import Preprocessing


class Changes(TypedDict, total=False):
    """Changes to a model's preprocessing; a field that is absent keeps the adapter's default."""

    input_size: int | Sequence[int] | None
    """Pixels: 224, or height and width."""
    resize: int | Sequence[int] | None
    """Short side, or height and width, before the middle is cut out; None never resizes."""
    interpolation: str
    range: str
    """`0..1`, `0..255`, or `-1..1`, which is 0..1 with mean and std 0.5."""
    mean: Sequence[float] | float
    std: Sequence[float] | float
    layout: str
    order: str
    channels: int
    dtype: str


def changed(base: Preprocessing, changes: Changes) -> Preprocessing:
    """A preprocessing with the caller's changes applied.

    A new input size takes the resize along, as `Preprocessing.at_size` does, unless another resize is given.
    """
    changes = _checked_kinds(changes)
    given: dict[str, Any] = {
        key: value for key, value in changes.items() if key not in ("input_size", "resize", "range")
    }
    channels = given.get("channels", base.channels)
    if channels != base.channels:
        given = {"mean": (), "std": (), **given}
    if (wanted := changes.get("range")) is not None:
        if wanted == "-1..1":
            given = {"value_range": "0..1", "mean": 0.5, "std": 0.5, **given}
        else:
            given = {"value_range": wanted, "mean": (), "std": (), **given}
    for name in ("mean", "std"):
        if name in given:
            given[name] = _per_channel(name, given[name], channels)
    if "input_size" in changes:
        base = base.at_size(_pair(changes["input_size"]))
    if "resize" in changes:
        wanted_size = changes["resize"]
        given["resize"] = tuple(wanted_size) if isinstance(wanted_size, Sequence) else wanted_size
    return replace(base, **given)


def whole_number(name: str, value: Any, most: int = 1_000_000) -> int:
    """A whole number from 1; an error that names the option if it is anything else."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise OptionError(f"{name} must be an integer from 1 to {most}, got {value!r:.60}")
    return int(value)


def _checked_kinds(changes: Changes) -> Changes:
    """The changes as plain values; an error if one is of a kind that it cannot be."""
    given: dict[str, Any] = {
        name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in changes.items()
    }
    for name, value in given.items():
        if name in ("interpolation", "range", "layout", "order", "dtype"):
            if not isinstance(value, str):
                raise OptionError(f"{name} must be a string, got {value!r:.60}")
        elif name == "channels":
            whole_number(name, value)
        elif name in ("input_size", "resize") and value is not None:
            sides = list(value) if isinstance(value, list | tuple) else [value]
            if not 1 <= len(sides) <= 2:
                raise OptionError(f"{name} must be in pixels, such as 224 or (224, 320), got {value!r:.60}")
            for side in sides:
                whole_number(name, side)
    return cast("Changes", given)


def class_list(classes: Any) -> tuple[int | None, tuple[str, ...] | None]:
    """How many classes, and their names if they are known.

    >>> class_list(10), class_list(["cat", "dog"])
    ((10, None), (2, ('cat', 'dog')))
    """
    if classes is None or (isinstance(classes, int) and not isinstance(classes, bool) and classes > 0):
        return classes, None
    if isinstance(classes, str) and classes in class_lists:
        classes = class_names(classes)
    if isinstance(classes, str | Path):
        classes = text_lines("classes", classes)
    if isinstance(classes, Sequence) and classes and all(isinstance(name, str) for name in classes):
        return len(classes), tuple(classes)
    raise OptionError(
        "classes must be a number, a list of names, or a text file with one name per line, got "
        f"{classes!r:.60}"
    )


def text_lines(what: str, file: str | Path) -> list[str]:
    """The lines of a text file, or the list in a JSON file."""
    try:
        text = Path(file).read_text(encoding="utf-8")
        found = json.loads(text) if Path(file).suffix == ".json" else text.splitlines()
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"{what} must name a readable file, got {str(file)!r} ({error})") from None
    if not isinstance(found, list) or not all(isinstance(line, str) for line in found):
        raise OptionError(f"{what} in {file} must be a list of strings")
    return [line.strip() for line in found if line.strip()]


def parse_options(texts: Iterable[str]) -> dict[str, Any]:
    """Options as they stand on a command line.

    >>> parse_options(["input_size=32", "mean=0.5,0.5,0.5", "pretrained=no", "resize=none"])
    {'input_size': 32, 'mean': (0.5, 0.5, 0.5), 'pretrained': False, 'resize': None}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise OptionError(
                f"a model option must have the form name=value, such as range=0..255, got {text!r}"
            )
        key = name.strip().replace("-", "_")
        if key in found:
            raise OptionError(f"a model option must be given once, got {key!r} again")
        found[key] = _value(key, value.strip())
    return found


def check_names(options: Mapping[str, Any], accepted: Iterable[str], kind: str) -> None:
    """Refuse an option that the adapter does not know, with the nearest that it does."""
    known = dict.fromkeys([*accepted, *Changes.__annotations__])
    for name in options:
        if name not in known:
            raise OptionError(unknown(f"option of {kind} models", name, known))


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_TEXTS = frozenset(
    {"name", "version", "digest", "token", "range", "device", "arch", "templates", "label_space", "filter"}
)


def _value(name: str, text: str) -> Any:
    if name in _TEXTS:
        return text
    if text.lower() in ("none", ""):
        return None
    if text.lower() in ("yes", "true", "no", "false"):
        return text.lower() in ("yes", "true")
    parts = re.split(r"\s*[,×x]\s*", text)
    if all(_NUMBER.fullmatch(part) for part in parts):
        numbers = tuple(int(part) if part.isdecimal() else float(part) for part in parts)
        return numbers[0] if len(numbers) == 1 else numbers
    return text


def _per_channel(name: str, value: Any, channels: int) -> tuple[float, ...]:
    values = value if isinstance(value, list | tuple) else (value,) * channels if value is not None else ()
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in values):
        raise OptionError(f"{name} must have one number for each of {channels} channels, got {value!r:.60}")
    return tuple(values)


def _pair(size: Any) -> Any:
    if size is None:
        return None
    return (size, size) if isinstance(size, int) else tuple(size)

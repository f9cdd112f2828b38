"""What a caller may say about a model beyond where it is, as values or as text."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, get_args, get_type_hints

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_integer
from beaufort.data.labels import class_lists, class_names
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelSpec

_MOST_PIXELS = 999_999
"""Along a side, and the most channels that are looked at."""


class PreprocessingOptions(TypedDict, total=False):
    """Changes to a model's preprocessing; a field that is missing keeps the adapter's default."""

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


class ModelOptions(PreprocessingOptions, total=False):
    """Options of every kind of model."""

    name: str | None
    """Name in tables and stores; that of the file, architecture or address if not given."""
    classes: Any
    """How many, a list of names, a text file of them, or the name of a known list (`imagenet-1k`)."""
    label_space: str | None
    """What the classes are, `imagenet-1k` say."""
    max_batch: int | None
    """The most images to run at once."""


class DeviceOptions(ModelOptions, total=False):
    """Options of models that run here."""

    device: str
    """`cpu`, `cuda`, `cuda:1`, `mps` (torch only); `auto`, the default, takes a GPU if there is one."""
    threads: int | None
    """Of the library that runs it; torch has one number of threads for the whole process."""


class TorchOptions(DeviceOptions, total=False):
    """Options of torch modules."""

    channels_last: bool
    """Lay images out with channels last; faster on some devices."""
    tf32: bool
    """Let a GPU multiply with 10 bits of precision; faster, and part of the digest."""


def option_names(load: Callable[..., Any]) -> tuple[str, ...]:
    """The options of a function that loads models: its keyword-only parameters and those it unpacks."""
    parameters = inspect.signature(load).parameters.values()
    names = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    unpacked = [one.name for one in parameters if one.kind is one.VAR_KEYWORD]
    for group in unpacked:
        names += get_type_hints(get_args(get_type_hints(load, include_extras=True)[group])[0])
    return tuple(names)


def make_spec(
    options: ModelOptions,
    *,
    default_name: str,
    source: str,
    base: Preprocessing,
    weights: str,
    details: Mapping[str, Any] | None = None,
) -> ModelSpec:
    """The spec of a model with the caller's options.

    Args:
        options: what the caller said.
        default_name: its name if the caller gave none.
        source: where it comes from.
        base: the preprocessing before the caller's changes.
        weights: what identifies the parameters.
        details: what else the predictions depend on.
    """
    count, names = class_list(options.get("classes"))
    name = options.get("name")
    return ModelSpec(
        name=default_name if name is None else name,
        source=source,
        preprocessing=apply_options(base, options),
        classes=count,
        class_names=names,
        label_space=options.get("label_space"),
        weights=weights,
        details=details or None,
    )


def apply_options(base: Preprocessing, options: PreprocessingOptions) -> Preprocessing:
    """A preprocessing with the caller's changes applied.

    A new input size takes the resize along, as `Preprocessing.at_size` does, unless another resize is given.
    """
    given: dict[str, Any] = {
        name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in options.items()
        if name in PreprocessingOptions.__annotations__
    }
    channels = given.get("channels", base.channels)
    validate_integer("channels", channels, 1, 3)
    if channels != base.channels:
        given = {"mean": (), "std": (), **given}
    if "range" in given:
        wanted = given.pop("range")
        if wanted == "-1..1":
            given = {"value_range": "0..1", "mean": 0.5, "std": 0.5, **given}
        else:
            given = {"value_range": wanted, "mean": (), "std": (), **given}
    for name in ("mean", "std"):
        if name in given:
            given[name] = _per_channel(name, given[name], channels)
    if "input_size" in given:
        size = _sides("input_size", given.pop("input_size"))
        base = base.at_size((size, size) if isinstance(size, int) else size)
    if "resize" in given:
        given["resize"] = _sides("resize", given["resize"])
    return replace(base, **given)


def _sides(name: str, value: Any) -> Any:
    """One side, or height and width, in pixels; None stays None."""
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise OptionError(f"{name} must be in pixels, such as 224 or (224, 320), got {value!r:.60}")
        return tuple(validate_integer(name, side, 1, _MOST_PIXELS) for side in value)
    return None if value is None else validate_integer(name, value, 1, _MOST_PIXELS)


def _per_channel(name: str, value: Any, channels: int) -> tuple[float, ...]:
    values = value if isinstance(value, list | tuple) else (value,) * channels if value is not None else ()
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in values):
        raise OptionError(f"{name} must have one number for each of {channels} channels, got {value!r:.60}")
    return tuple(values)


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

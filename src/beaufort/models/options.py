"""Options of models: names and types, and parsing of `NAME=VALUE`."""

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


class PreprocessingOptions(TypedDict, total=False):
    """Changes to a model's preprocessing; other fields keep the adapter's default."""

    input_size: int | Sequence[int] | None
    """Pixels: 224, or height and width."""
    resize: int | Sequence[int] | None
    """Short side, or height and width, before the center crop; None never resizes."""
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
    """Name in tables and stores; that of the file, architecture or URL if not given."""
    classes: Any
    """Number of classes, a list of names, a text file of them, or a known list (`imagenet-1k`)."""
    label_space: str | None
    """Meaning of the classes, such as `imagenet-1k`."""
    max_batch: int | None
    """Largest number of images to run at once."""


class DeviceOptions(ModelOptions, total=False):
    """Options of models that run on this machine."""

    device: str
    """`cpu`, `cuda`, `cuda:1`, `mps` (torch only); `auto`, the default, uses a GPU if there is one."""
    threads: int | None
    """Threads of the library; torch has one setting for the whole process."""


class TorchOptions(DeviceOptions, total=False):
    """Options of torch modules."""

    channels_last: bool
    """Use the memory format channels last; faster on some devices."""
    tf32: bool
    """Allow TensorFloat-32 on a GPU; faster, less precise, and part of the digest."""
    compile: bool
    """Compile the module with `torch.compile`; part of the digest."""


def option_names(load: Callable[..., Any]) -> tuple[str, ...]:
    """Return the keyword-only parameters of a loader, and those of the TypedDict that it unpacks."""
    parameters = inspect.signature(load).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            unpacked = get_type_hints(load, include_extras=True)[parameter.name]
            names += get_type_hints(get_args(unpacked)[0])
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
    """Return the spec of a model: `base` and `default_name` are used where the options do not say."""
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
    """Return a preprocessing with changes.

    A new input size changes the resize as well, as `Preprocessing.at_size` does, unless a resize is given.
    """
    changes: dict[str, Any] = {
        name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in options.items()
        if name in PreprocessingOptions.__annotations__
    }
    channels = validate_integer("channels", changes.get("channels", base.channels), 1, 3)
    if channels != base.channels:
        changes = {"mean": (), "std": (), **changes}
    if (value_range := changes.pop("range", None)) == "-1..1":
        changes = {"value_range": "0..1", "mean": 0.5, "std": 0.5, **changes}
    elif "range" in options:
        changes = {"value_range": value_range, "mean": (), "std": (), **changes}
    for name in ("mean", "std"):
        if name in changes and not isinstance(values := changes[name], list | tuple):
            changes[name] = () if values is None else (values,) * channels
    if "input_size" in changes:
        size = _sides("input_size", changes.pop("input_size"))
        base = base.at_size((size, size) if isinstance(size, int) else size)
    if "resize" in changes:
        changes["resize"] = _sides("resize", changes["resize"])
    return replace(base, **changes)


def _sides(name: str, value: Any) -> Any:
    """Return one side, or height and width, in pixels; None stays None."""
    if isinstance(value, list | tuple):
        return tuple(validate_integer(name, side, 1) for side in value)
    return None if value is None else validate_integer(name, value, 1)


def class_list(classes: Any) -> tuple[int | None, tuple[str, ...] | None]:
    """Return the number of classes, and their names if known.

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
        "classes must be a positive integer, a list of names, or a text file with one name per line, got "
        f"{classes!r:.60}"
    )


def text_lines(name: str, file: str | Path) -> list[str]:
    """Return the lines of a text file, or the list in a JSON file."""
    try:
        text = Path(file).read_text(encoding="utf-8")
        lines = json.loads(text) if Path(file).suffix == ".json" else text.splitlines()
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"cannot read {name} from {str(file)!r}: {error}") from None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise OptionError(f"{name} in {file} must be a list of strings")
    return [line.strip() for line in lines if line.strip()]


def parse_options(texts: Iterable[str]) -> dict[str, Any]:
    """Return options written as on the command line.

    >>> parse_options(["input_size=32", "mean=0.5,0.5,0.5", "pretrained=no", "resize=none"])
    {'input_size': 32, 'mean': (0.5, 0.5, 0.5), 'pretrained': False, 'resize': None}
    """
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        key = name.strip().replace("-", "_")
        if not equals or not key:
            raise OptionError(f"model options must be written as name=value, got {text!r}")
        if key in options:
            raise OptionError(f"model option {key!r} is given twice")
        options[key] = _value(key, value.strip())
    return options


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_TEXTS = frozenset(
    {
        *("name", "version", "digest", "token", "range", "device", "arch", "templates", "label_space"),
        *("filter", "output", "precision", "provider"),
    }
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

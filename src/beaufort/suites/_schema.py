"""Validation of a suite: the value of each key, then what must go together.

Works on plain values, so that files and suites made in Python follow the same rules. A mistake is a path of
keys and list indices, and a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from beaufort._core.errors import BeaufortError, OptionError, UnknownNameError
from beaufort._core.registry import similar_names, unknown_message
from beaufort._core.validation import validate_choice
from beaufort.corruptions import (
    SCALE_NAMES,
    SCALES,
    SUBSETS,
    corruptions,
    is_chain,
    members_of,
    validate_severity,
)
from beaufort.corruptions.sequences import SIDES, sequences
from beaufort.data import Step
from beaufort.data.labels import CONVENTIONS, IDENTITY, class_lists, label_maps
from beaufort.data.protocols import protocols
from beaufort.data.selections import selections
from beaufort.metrics import BASELINE_NAMES, metrics
from beaufort.suites.conditions import DATASET_NAME, Condition
from beaufort.suites.streams import NAME as STREAM

Where: TypeAlias = tuple[str | int, ...]
"""A key, or a key and the index of an entry in its list; empty for the whole suite."""
Found: TypeAlias = Iterator[tuple[Where, str]]
Check: TypeAlias = Callable[[Any], object]
"""Raises a `BeaufortError` if a value is invalid."""

PUBLISHED: Final = "published"
_STABILITY = ("flip_probability", "top5_distance", "mfr", "mt5d")
"""Metrics of sequences; the last two divide by a baseline."""
_ERRORS = ("mce", "relative_mce")
METRICS = (*_ERRORS, "mean_accuracy", *_STABILITY)
"""Headline metrics that a suite can ask for, beside those of plug-ins."""


class _List(NamedTuple):
    """A list without repetitions."""

    what: str
    example: str
    check: Check
    """For one entry."""
    members: Callable[[Any], Collection[Any]] = lambda entry: (entry,)
    """Return what an entry stands for."""

    def mistakes(self, value: Any) -> Found:
        if not isinstance(value, list | tuple) or not value:
            yield (), f"must be a list of {self.what}, such as {self.example}, got {value!r:.60}"
            return
        seen: set[Any] = set()
        for index, entry in enumerate(value):
            if wrong := list(_raised(self.check, entry, index)):
                yield from wrong
                continue
            if repeated := [str(one) for one in self.members(entry) if one in seen]:
                yield (index,), f"{', '.join(repeated)} is in the list already; list each entry once"
            seen.update(self.members(entry))


def _raised(check: Check, value: Any, *where: str | int) -> Found:
    try:
        check(value)
    except BeaufortError as error:
        yield where, str(error)


def _rule(holds: Callable[[Any], object], rule: str) -> Check:
    def check(value: Any) -> None:
        if not holds(value):
            raise OptionError(f"must {rule}, got {value!r:.60}")

    return check


def _check_corruption(name: Any) -> None:
    if is_chain(name):
        raise OptionError(f"{name!r:.60} is a chain, which has its own severities; write it under 'shifts'")
    if not members_of(name):
        raise UnknownNameError(corruptions.unknown_message(name, (*corruptions, *SUBSETS)))


def _check_shift(text: Any) -> None:
    condition = Condition.parse(f"x/{text}")
    if condition.shift is None and not is_chain(condition.corruption):
        raise OptionError(f"{text!r:.60} is a corruption; write it under 'corruptions'")


def _check_metric(name: Any) -> None:
    validate_choice("metric", name, (*METRICS, *(name for name, one in metrics.items() if one.of_errors)))


def _check_labels(value: Any) -> None:
    if not isinstance(value, dict):
        validate_choice("label space", value, (IDENTITY, *class_lists, *label_maps))
        return
    for name, outputs in value.items():
        if not isinstance(outputs, list) or not all(type(one) in (int, str) for one in outputs):
            raise OptionError(f"the outputs of {name!r:.60} must be a list of numbers or names of outputs")


def _printable(value: Any, also: str = "") -> bool:
    return isinstance(value, str) and all(c.isprintable() or c in also for c in value)


_name = _rule(
    lambda value: isinstance(value, str) and DATASET_NAME.fullmatch(value),
    "consist of letters, digits, '-', '_' and '.' and start with a letter or digit",
)
_flag = _rule(lambda value: isinstance(value, bool), "be true or false")
_prose = _rule(lambda value: _printable(value, also="\n"), "be text (put it in quotes, or remove the key)")
_BASELINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")

FIELDS: Mapping[str, Check | _List] = {
    "name": _name,
    "version": _rule(lambda value: type(value) is int and value >= 1, "be a positive integer"),
    "title": _rule(lambda value: value and _printable(value), "be one line of text"),
    "dataset": _name,
    "scale": partial(validate_choice, "scale", choices=SCALE_NAMES),
    "corruptions": _List("corruptions", "[fog, snow] or [weather]", _check_corruption, members_of),
    "severities": _List("severities", f"[1, 2, 3, 4, 5], or {PUBLISHED}", validate_severity),
    "clean": _flag,
    "clean_in_mean": _flag,
    "prepare": _List("steps", "[resize 256, crop 224]", Step.parse, lambda _: ()),
    "baseline": _rule(
        lambda value: value is None or (isinstance(value, str) and _BASELINE.fullmatch(value)),
        "be a model's name, such as alexnet, or null",
    ),
    "metrics": _List("metrics", "[mean_accuracy]", _check_metric),
    "labels": _check_labels,
    "convention": partial(validate_choice, "convention", choices=CONVENTIONS),
    "classes": partial(validate_choice, "list of classes", choices=label_maps),
    "held_out": partial(validate_choice, "protocol", choices=protocols),
    "images": partial(validate_choice, "selection of images", choices=selections),
    "counterpart": _name,
    "shifts": _List("shifts", "[my-blur@2.5, fog@2+jpeg_compression@3]", _check_shift),
    "sequences": _List(
        "sequences", "[rotate, snow]", partial(validate_choice, "sequence", choices=sequences)
    ),
    "citation": _prose,
    "notes": _prose,
}
"""Every key of a suite of one dataset, and how its value is checked."""

_EXAMPLES = {
    "name": "my-suite",
    "version": "1",
    "dataset": "imagenet-val",
    "scale": "imagenet",
    "corruptions": "[fog, snow]",
    "severities": "[1, 2, 3, 4, 5]",
}
"""An example of each key that may be required."""

_BESIDE_PARTS = ("name", "version", "title", "citation", "notes")


def find_mistakes(values: Mapping[str, Any]) -> Found:
    """Yield everything that is wrong with a suite's values, as in a file or from `Suite.as_dict`."""
    if "parts" in values:
        yield from _mistakes_of_parts(values)
    else:
        found = list(_mistakes_of_keys(values, FIELDS, _required(values)))
        yield from found or _mistakes_together(values)


def key_of(where: Where) -> str:
    """Return the key of a suite that a mistake is about; empty if it is about none."""
    known = [str(key) for key in where if key in FIELDS or key == "parts"]
    return known[-1] if known else ""


def part_values(values: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as a suite of its own: named like its dataset, with the version of the whole."""
    return {"name": part.get("dataset", "part"), "version": values.get("version", 1), **part}


def _required(values: Mapping[str, Any]) -> Collection[str]:
    """A suite may consist of its clean images, or give only a scale for its shifts."""
    if "sequences" in values:
        return ("name", "version", "dataset", "scale")
    corrupted = {"corruptions", "severities", *(() if "shifts" in values else ("scale",))}
    return _EXAMPLES if corrupted.intersection(values) else ("name", "version", "dataset")


def _mistakes_of_keys(values: Mapping[str, Any], known: Collection[str], required: Collection[str]) -> Found:
    unknown = [key for key in values if key not in known]
    for key in unknown:
        yield (key,), f"{key!r} belongs in each part" if key in FIELDS else unknown_message("key", key, known)
    for key in required:
        if key not in values and not similar_names(key, unknown):
            yield (), f"{key!r} is missing; write for example '{key}: {_EXAMPLES[key]}'"
    for key in known:
        if key not in values or (key, values[key]) in (("severities", PUBLISHED), ("prepare", [])):
            continue
        check, value = FIELDS[key], values[key]
        if value is None and key != "baseline":
            yield (key,), "has no value; add one, or remove the key"
        else:
            found = check.mistakes(value) if isinstance(check, _List) else _raised(check, value)
            yield from (((key, *where), message) for where, message in found)


def _mistakes_of_parts(values: Mapping[str, Any]) -> Found:
    beside = {key: value for key, value in values.items() if key != "parts"}
    yield from _mistakes_of_keys(beside, _BESIDE_PARTS, ("name", "version"))
    parts = values["parts"]
    if not isinstance(parts, list) or not parts or not all(isinstance(part, dict) for part in parts):
        yield ("parts",), "must be a list of datasets; write for example '- dataset: imagenet-val'"
        return
    wholes = [part_values(values, part) for part in parts]
    wrong = [
        (("parts", number, *where), message)
        for number, whole in enumerate(wholes)
        for where, message in find_mistakes(whole)
    ]
    yield from wrong or _mistakes_between(wholes, values.get("version"))


def _mistakes_between(parts: list[dict[str, Any]], version: object) -> Found:
    """What is wrong with valid parts together: their names, versions and counterparts."""
    names = [part["name"] for part in parts]
    for number, part in enumerate(parts):
        where = ("parts", number)
        if names.index(part["name"]) != number:
            yield (*where, "name"), f"{part['name']!r} is the name of another part; use another name"
        if part["version"] != version:
            yield (*where, "version"), "a part has the version of the suite; remove it"
        other = part.get("counterpart")
        if other is not None and (other == part["name"] or other not in names):
            available = ", ".join(name for name in names if name != part["name"])
            yield (*where, "counterpart"), f"{other!r} is not another part; available: {available}"
        elif other is not None and not parts[names.index(other)].get("clean", True):
            yield (*where, "counterpart"), f"{other!r} has no clean images to compare with"


def _mistakes_together(values: Mapping[str, Any]) -> Found:
    """What does not go together, in values that are valid one by one."""
    scale, severities = values.get("scale"), values.get("severities", ())
    names, clean = values.get("corruptions", ()), values.get("clean", True)
    baseline = None if values.get("baseline") == "none" else values.get("baseline")
    for index, name in enumerate(names if scale in SCALES else ()):
        for one in members_of(name):
            if scale not in (recipes := corruptions[one].recipes):
                yield (
                    ("corruptions", index),
                    f"{one} has no constants for the scale {scale!r}; it has them for {', '.join(recipes)}, "
                    "and the scale 'relative' fits any size",
                )
                break
    if severities == PUBLISHED and scale != "mnist":
        yield (
            ("severities",),
            f"{PUBLISHED!r} is for the scale 'mnist', where each corruption has one published severity; "
            "write for example [1, 2, 3, 4, 5]",
        )
    between = [] if severities == PUBLISHED else [str(one) for one in severities if one % 1]
    if baseline in BASELINE_NAMES and between:  # a published network has errors at integer severities only
        yield (
            ("baseline",),
            f"the errors of {baseline} are known at integer severities only, not at {', '.join(between)}; "
            "name a model of the store, or remove the baseline",
        )
    yield from _undefined_metrics(values, baseline)
    if values.get("clean_in_mean", False) and not clean:
        yield ("clean_in_mean",), "the clean images are not part of the suite; write 'clean: true'"
    if not clean and not any(key in values for key in ("corruptions", "shifts", "sequences")):
        yield ("clean",), "the suite has no images; write 'clean: true', or some corruptions"
    streams = [str(one).startswith(f"{STREAM}@") for one in values.get("shifts", ())]
    if any(streams) and (clean or "corruptions" in values or not all(streams)):
        yield (
            ("shifts",),
            "a stream has all images of its suite; write 'clean: false' and no other conditions",
        )
    if "sequences" in values:
        if other := [key for key in ("corruptions", "severities", "shifts") if key in values]:
            yield (
                (other[0],),
                "cannot be used together with 'sequences'; write a suite of parts, one with the sequences",
            )
        if scale not in SIDES:
            yield ("scale",), f"must be one of {', '.join(SIDES)} for sequences, got {scale!r}"
    yield from _oversized_crops(values.get("prepare", ()))


def _undefined_metrics(values: Mapping[str, Any], baseline: str | None) -> Found:
    mixed = "corruptions" not in values or "shifts" in values
    instead = "write for example [mean_accuracy]"
    rules: tuple[tuple[tuple[str, ...], bool, str], ...] = (
        (_ERRORS, not baseline, "divides by the errors of a baseline; add for example 'baseline: alexnet'"),
        (_STABILITY[2:], not baseline, "divides by the values of a baseline; name one, or remove it"),
        (_STABILITY, "sequences" not in values, f"is about sequences; {instead}"),
        (_ERRORS, mixed, f"is about corruptions alone; {instead}"),
        (_ERRORS[1:], not values.get("clean", True), "needs the clean images; write 'clean: true'"),
    )
    for index, name in enumerate(values.get("metrics", ())):
        for names, broken, message in rules:
            if broken and name in names:
                yield ("metrics", index), f"{name} {message}"


def _oversized_crops(steps: Collection[str]) -> Found:
    side = 0
    for index, step in enumerate(map(Step.parse, steps)):
        if step.action == "crop" and 0 < side < step.side:
            yield (
                ("prepare", index),
                f"'{step}' cuts out more than the {side} pixels that the step before leaves",
            )
        side = step.side

"""What a suite may say: the valid values of each key, then what must go together.

Works on plain values, so that a file and a `Suite` made in Python are held to the same. A mistake is where it
is, as a path of keys and numbers of entries, and what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeAlias

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.registry import listed, unknown_message
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
from beaufort.metrics import BASELINE_NAMES, metrics
from beaufort.suites.conditions import DATASET_NAME, Condition
from beaufort.suites.shifts import shifts

Where: TypeAlias = tuple[str | int, ...]
"""A key, or a key and the number of an entry in its list; empty for the whole."""
Found: TypeAlias = Iterator[tuple[Where, str]]
Wrong: TypeAlias = Callable[[Any], str]
"""Says what is wrong with a value; empty if nothing is."""

BROKEN: Final = object()
"""Stands for a value that could not be read and is reported already."""
PUBLISHED: Final = "published"
STABILITY = ("flip_probability", "top5_distance", "mfr", "mt5d")
"""Metrics of sequences; the last two divide by a baseline."""
_ERRORS = ("mce", "relative_mce")
METRICS = (*_ERRORS, "mean_accuracy", *STABILITY)
"""Headline metrics that a suite can ask for, beside those of packages."""

_LONGEST = 60
"""Characters of a value that a message repeats."""


def _shown(value: object) -> str:
    """A value as it stands in YAML, or nearly."""
    text = "nothing" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _unknown(kind: str, name: object, known: Collection[str]) -> str:
    """The message for a wrong name, also if it is not a string or very long."""
    if not isinstance(name, str):
        return f"unknown {kind} {_shown(name)}; available: {listed(known)}"
    return unknown_message(kind, name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…", known)


def _rule(holds: Callable[[Any], bool], must: str) -> Wrong:
    return lambda value: "" if holds(value) else f"must {must}, got {_shown(value)}"


def _known(kind: str, names: Callable[[], Collection[str]]) -> Wrong:
    return lambda name: "" if isinstance(name, str) and name in names() else _unknown(kind, name, names())


class _List(NamedTuple):
    """A list without repetitions."""

    what: str
    example: str
    wrong: Wrong
    """Of one entry."""
    members: Callable[[Any], Collection[Any]] = lambda entry: (entry,)
    """What an entry stands for."""

    def find(self, value: Any) -> Found:
        """What is wrong with the list and its entries."""
        if not isinstance(value, list | tuple):
            yield (), f"must be a list of {self.what}, such as {self.example}, got {_shown(value)}"
            return
        if not value:
            yield (), f"must not be empty; write for example {self.example}"
        seen: set[Any] = set()
        for number, entry in enumerate(value):
            if message := self.wrong(entry):
                yield (number,), message
                continue
            if twice := [str(one) for one in self.members(entry) if one in seen]:
                yield (number,), f"{', '.join(twice)} is in the list already; list each entry once"
            seen.update(self.members(entry))


def _wrong_corruption(name: Any) -> str:
    if is_chain(name):
        return f"{_shown(name)} is a chain, which has its own severities; write it under 'shifts'"
    if members_of(name):
        return ""
    named_shift = isinstance(name, str) and name in shifts
    return (
        corruptions.unknown_message(name)
        if named_shift
        else _unknown("corruption", name, (*corruptions, *SUBSETS))
    )


def _wrong_severity(severity: Any) -> str:
    try:
        validate_severity(severity)
    except OptionError:
        return f"severity must be a number from 1 to 5, got {_shown(severity)}"
    return ""


def _wrong_shift(text: Any) -> str:
    try:
        condition = Condition.parse(f"x/{text}")
    except BeaufortError as error:
        return str(error)
    if condition.shift is None and not is_chain(condition.corruption):
        return f"{text!r:.60} is a corruption; write it under 'corruptions'"
    return ""


def _metric_names() -> tuple[str, ...]:
    return (*METRICS, *(name for name, one in metrics.items() if one.of_errors))


def _wrong_step(text: Any) -> str:
    try:
        Step.parse(str(text) if isinstance(text, Step) else text)
    except OptionError as error:
        return str(error)
    return ""


_label_space = _known("label space", lambda: (IDENTITY, *class_lists, *label_maps))


def _wrong_labels(value: Any) -> str:
    if not isinstance(value, dict | tuple):
        return _label_space(value)
    for name, outputs in dict(value).items():
        if not isinstance(outputs, list | tuple) or not all(type(one) in (int, str) for one in outputs):
            return f"the outputs of {name!r:.60} must be a list of numbers or names of outputs"
    return ""


_name = _rule(
    lambda value: isinstance(value, str) and DATASET_NAME.fullmatch(value) is not None,
    "have letters, digits, '-', '_' and '.' only, a letter or a digit first",
)
_flag = _rule(lambda value: isinstance(value, bool), "be true or false")
_prose = _rule(lambda value: _printable(value, also="\n"), "be text (put it in quotes, or remove the key)")
_BASELINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")


def _printable(value: Any, also: str = "") -> bool:
    return isinstance(value, str) and all(c.isprintable() or c in also for c in value)


FIELDS: Mapping[str, Wrong | _List] = {
    "name": _name,
    "version": _rule(lambda value: type(value) is int and value >= 1, "be a positive integer"),
    "title": _rule(lambda value: bool(value) and _printable(value), "be one line of text"),
    "dataset": _name,
    "scale": _known("scale", lambda: SCALE_NAMES),
    "corruptions": _List("corruptions", "[fog, snow] or [weather]", _wrong_corruption, members_of),
    "severities": _List("severities", f"[1, 2, 3, 4, 5], or {PUBLISHED}", _wrong_severity),
    "clean": _flag,
    "clean_in_mean": _flag,
    "prepare": _List("steps", "[resize 256, crop 224]", _wrong_step, lambda _: ()),
    "baseline": _rule(
        lambda value: value is None or (isinstance(value, str) and _BASELINE.fullmatch(value) is not None),
        "be a model's name, such as alexnet, or null",
    ),
    "metrics": _List("metrics", "[mean_accuracy]", _known("metric", _metric_names)),
    "labels": _wrong_labels,
    "convention": _known("convention", lambda: CONVENTIONS),
    "classes": _known("list of classes", lambda: label_maps),
    "held_out": _known("protocol", lambda: protocols),
    "counterpart": _name,
    "shifts": _List("shifts", "[my-blur@2.5, fog@2+jpeg_compression@3]", _wrong_shift),
    "sequences": _List("sequences", "[rotate, snow]", _known("sequence", lambda: sequences)),
    "citation": _prose,
    "notes": _prose,
}
"""Every key that a suite of one dataset may have, and how its value is checked."""

_EXAMPLES = {
    "name": "my-suite",
    "version": "1",
    "dataset": "imagenet-val",
    "scale": "imagenet",
    "corruptions": "[fog, snow]",
    "severities": "[1, 2, 3, 4, 5]",
}
"""The keys that may be required, each with an example."""

_CORRUPTED = ("scale", "corruptions", "severities")
"""What goes together: a suite of other shifts, or a part, may have none, or a scale for its chains."""

_BESIDE_PARTS = ("name", "version", "title", "parts", "citation", "notes")


def find_mistakes(values: Mapping[str, Any], *, clean_alone: bool = False) -> Found:
    """Everything that is wrong with a suite's values.

    Args:
        values: by key, as in a file or as the fields of a `Suite`.
        clean_alone: whether it may consist of its clean images, as a part or a suite made in Python may.
    """
    if "parts" in values:
        yield from _mistakes_of_parts(values)
    else:
        yield from _mistakes_of_one(values, _required(values, clean_alone))


def key_of(where: Where) -> str:
    """The key that a mistake is about, if it is one that a suite has."""
    known = [str(key) for key in where if key in FIELDS or key == "parts"]
    return known[-1] if known else ""


def part_values(values: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """A part as a suite of its own: called like its dataset, of the version of the whole."""
    named = {} if "dataset" not in part else {"name": part["dataset"]}
    return {**named, "version": values.get("version", 1), **part}


def _required(values: Mapping[str, Any], clean_alone: bool) -> set[str]:
    if "sequences" in values:
        return {"name", "version", "dataset", "scale"}
    other = "shifts" in values
    some = any(key in values for key in (_CORRUPTED[1:] if other else _CORRUPTED))
    return {"name", "version", "dataset", *(_CORRUPTED if some or not (clean_alone or other) else ())}


def _mistakes_of_one(values: Mapping[str, Any], required: set[str]) -> Found:
    """What is wrong with the values of a suite of one dataset, which must have some keys."""
    bad = {key for key, value in values.items() if value is BROKEN}
    bad.update(key for key in _CORRUPTED if key not in values)
    misspelled: set[str] = set()
    for key in values:
        if key not in FIELDS:
            misspelled.update(get_close_matches(key[:_LONGEST], FIELDS, n=1))
            yield (key,), _unknown("key of a suite", key, FIELDS)
    for key, example in _EXAMPLES.items():
        if key in required and key not in values:
            bad.add(key)
            if key not in misspelled:
                yield (), f"{key!r} is missing; write for example '{key}: {example}'"
    for key, check in FIELDS.items():
        value = values.get(key)
        if key not in values or key in bad or (key, value) in (("severities", PUBLISHED), ("prepare", [])):
            continue
        for where, message in check.find(value) if isinstance(check, _List) else [((), check(value))]:
            if message:
                bad.add(key)
                yield (key, *where), message
    for keys, check_together in _TOGETHER:
        if not bad.intersection(keys):
            yield from check_together(values)


def _mistakes_of_parts(values: Mapping[str, Any]) -> Found:
    """What is wrong with the values of a suite of several datasets."""
    one = {key: value for key, value in values.items() if key in _BESIDE_PARTS and key != "parts"}
    yield from _mistakes_of_one(one, {"name", "version"})
    for key in values:
        if key not in _BESIDE_PARTS:
            yield (key,), f"{key!r:.60} cannot be used beside 'parts'; available: {', '.join(_BESIDE_PARTS)}"
    parts = values["parts"]
    if parts is BROKEN:
        return
    if not isinstance(parts, list) or not parts or not all(isinstance(part, dict) for part in parts):
        yield ("parts",), "must be a list of datasets; write for example '- dataset: imagenet-val'"
        return
    wholes = [part_values(values, part) for part in parts]
    wrong = [
        (("parts", number, *where), message)
        for number, whole in enumerate(wholes)
        for where, message in find_mistakes(whole, clean_alone=True)
    ]
    yield from wrong or _mistakes_between(wholes, values.get("version"))


def _mistakes_between(parts: list[dict[str, Any]], version: object) -> Found:
    """What is wrong with parts that are right by themselves: their names, versions and counterparts."""
    names = [part["name"] for part in parts]
    for number, part in enumerate(parts):
        if names.index(part["name"]) != number:
            yield ("parts", number, "name"), f"{part['name']!r} is the name of another part; use another name"
        if part["version"] != version:
            yield ("parts", number, "version"), "a part has the version of the suite; remove it"
        other = part.get("counterpart")
        if other is None:
            continue
        if other == part["name"] or other not in names:
            yield (
                ("parts", number, "counterpart"),
                f"{other!r} is not another part; available: {', '.join(names)}",
            )
        elif not parts[names.index(other)].get("clean", True):
            yield ("parts", number, "counterpart"), f"{other!r} has no clean images to compare with"


def _constants(values: Mapping[str, Any]) -> Found:
    """Each corruption has constants for the scale."""
    scale = values["scale"]
    for number, name in enumerate(values["corruptions"] if scale in SCALES else ()):
        for one in members_of(name):
            if scale not in (recipes := corruptions[one].recipes):
                yield (
                    ("corruptions", number),
                    f"{one} has no constants for the scale {scale!r}; it has them for {', '.join(recipes)}, "
                    "and the scale 'relative' fits any size",
                )
                break


def _crops_fit(values: Mapping[str, Any]) -> Found:
    side = 0
    for number, text in enumerate(values.get("prepare", ())):
        step = Step.parse(str(text))
        if step.action == "crop" and 0 < side < step.side:
            yield (
                ("prepare", number),
                f"'{step}' cuts out more than the {side} pixels that the step before leaves",
            )
        side = step.side


def _published(values: Mapping[str, Any]) -> Found:
    if values["severities"] == PUBLISHED and values["scale"] != "mnist":
        yield (
            ("severities",),
            f"{PUBLISHED!r} is for the scale 'mnist', where each corruption has one published severity; "
            "write for example [1, 2, 3, 4, 5]",
        )


def _metrics_are_defined(values: Mapping[str, Any]) -> Found:
    no_baseline = values.get("baseline") in (None, "none")
    clean = values.get("clean", True)
    other = "corruptions" not in values or "shifts" in values
    instead = "write for example [mean_accuracy]"
    rules: tuple[tuple[tuple[str, ...], bool, str], ...] = (
        (_ERRORS, no_baseline, "divides by the errors of a baseline; add for example 'baseline: alexnet'"),
        (STABILITY[2:], no_baseline, "divides by the values of a baseline; name one, or remove it"),
        (STABILITY, "sequences" not in values, f"is about sequences; {instead}"),
        (_ERRORS, other, f"is about corruptions alone; {instead}"),
        (_ERRORS[1:], not clean, "needs the clean images; write 'clean: true'"),
    )
    for number, name in enumerate(values.get("metrics", ())):
        for names, broken, message in rules:
            if broken and name in names:
                yield ("metrics", number), f"{name} {message}"
    if values.get("clean_in_mean", False) and not clean:
        yield ("clean_in_mean",), "the clean images are not part of the suite; write 'clean: true'"
    if not clean and not any(key in values for key in ("corruptions", "shifts", "sequences")):
        yield ("clean",), "the suite has no images; write 'clean: true', or some corruptions"


def _baseline_has_severities(values: Mapping[str, Any]) -> Found:
    """A published network has errors at whole severities only."""
    baseline, severities = values.get("baseline"), values.get("severities", ())
    between = [] if severities == PUBLISHED else [str(one) for one in severities if one % 1]
    if baseline in BASELINE_NAMES and between:
        yield (
            ("baseline",),
            f"the errors of {baseline} are known at whole severities only, got {', '.join(between)}; name a "
            "model of the store, or remove the baseline",
        )


def _sequences_alone(values: Mapping[str, Any]) -> Found:
    """Sequences stand for themselves, at a scale that has frames."""
    if "sequences" not in values:
        return
    if other := [key for key in ("corruptions", "severities", "shifts") if key in values]:
        yield (other[0],), "a suite of sequences has nothing else; write a suite of parts, one of them these"
    if values.get("scale") not in SIDES:
        scale = _shown(values.get("scale"))
        yield ("scale",), f"must be one of {', '.join(SIDES)} for sequences, got {scale}"


_TOGETHER: tuple[tuple[set[str], Callable[[Mapping[str, Any]], Found]], ...] = (
    ({"scale", "corruptions"}, _constants),
    ({"scale", "severities"}, _published),
    ({"metrics", "baseline", "clean", "clean_in_mean"}, _metrics_are_defined),
    ({"baseline", "severities"}, _baseline_has_severities),
    ({"sequences"}, _sequences_alone),
    ({"prepare"}, _crops_fit),
)
"""What is checked once the keys it is about are right."""

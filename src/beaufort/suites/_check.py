"""What a suite may say: the valid values of each key, then what must go together.

Works on plain values, so that a file and a `Suite` made in Python are held to the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, TypeAlias

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.registry import listed, unknown
from beaufort.corruptions import (
    SCALE_NAMES,
    SCALES,
    SUBSETS,
    checked_severity,
    corruptions,
    is_chain,
    members_of,
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

Found: TypeAlias = Iterator[tuple[tuple[int, ...], str]]
"""The number of a list's entry, if it is about one, and what is wrong."""

BROKEN: Final = object()
"""Stands for a value that could not be read and that is told already."""

PUBLISHED: Final = "published"
STABILITY = ("flip_probability", "top5_distance", "mfr", "mt5d")
"""Numbers about sequences."""
METRICS = ("mce", "relative_mce", "mean_accuracy", *STABILITY)
"""Headline numbers that a suite can ask for, beside those of packages."""

_NEEDED = {
    "name": "my-suite",
    "version": "1",
    "dataset": "imagenet-val",
    "scale": "imagenet",
    "corruptions": "[fog, snow]",
    "severities": "[1, 2, 3, 4, 5]",
}
"""The keys that every suite has, each with an example; a part of one needs only its data set."""

_MADE = ("scale", "corruptions", "severities")
"""What goes together: a suite of other shifts, or a part, may have none, or a scale for its chains."""

_LONGEST = 60
"""Characters of a value that a message repeats."""

_BASELINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")


def find_mistakes(values: Mapping[str, object]) -> Iterator[tuple[Where, str]]:
    """Everything that is wrong with a suite's values."""
    if "parts" in values:
        from beaufort.suites._parts import find_mistakes_of_parts

        yield from find_mistakes_of_parts(values)
    else:
        yield from find_mistakes_of_one(values, needed(values))


def needed(values: Mapping[str, object], *, part: bool = False) -> set[str]:
    """The keys that a suite of one data set must have."""
    if "sequences" in values:
        return {"name", "version", "dataset", "scale"}
    other = "shifts" in values
    some = any(key in values for key in (_MADE[1:] if other else _MADE)) or not (part or other)
    return {"name", "version", "dataset", *(_MADE if some else ())}


def find_mistakes_of_one(values: Mapping[str, object], keys: set[str]) -> Iterator[tuple[Where, str]]:
    """What is wrong with the values of a suite of one data set, which must have some keys."""
    bad = {key for key, value in values.items() if value is BROKEN}
    meant = set()
    for key in values:
        if key not in _CHECKS:
            meant.update(get_close_matches(key[:_LONGEST], _CHECKS, n=1))
            yield (key,), _miss("key of a suite", key, _CHECKS)
    bad |= {key for key in _MADE if key not in values}
    for key, example in _NEEDED.items():
        if key in keys and key not in values:
            bad.add(key)
            if key not in meant:  # otherwise it is there, misspelled, and told
                yield (), f"{key!r} is missing; write for example '{key}: {example}'"
    for key, check in _CHECKS.items():
        if key in values and key not in bad:
            for where, message in check(values[key]):
                bad.add(key)
                yield (key, *where), message
    for about, check_together in _TOGETHER:
        if not bad.intersection(about):
            yield from check_together(values)


def key_of(where: Where) -> str:
    """The key that a mistake is about, if it is one that a suite has."""
    if len(where) > 2 and where[0] == "parts":
        return str(where[2]) if where[2] in _CHECKS else "parts"
    return str(where[0]) if where and where[0] in (*_CHECKS, "parts") else ""


def _miss(kind: str, name: object, known: Iterable[str]) -> str:
    """The message for a wrong name, also if it is not a string or very long."""
    if not isinstance(name, str):
        return f"unknown {kind} {_shown(name)}; known are {listed(known)}"
    return unknown(kind, name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…", dict.fromkeys(known))


def _shown(value: object) -> str:
    """A value as it stands in YAML, or nearly."""
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def printable(value: object, also: str = "") -> bool:
    return isinstance(value, str) and all(c.isprintable() or c in also for c in value)


def _name(value: object) -> Found:
    if not (isinstance(value, str) and DATASET_NAME.fullmatch(value)):
        quotes = "; put a number in quotes" if _whole(value) or isinstance(value, float) else ""
        yield (
            (),
            "must have letters, digits, '-', '_' and '.' only, a letter or a digit first, got "
            f"{_shown(value)}{quotes}",
        )


def _version(value: object) -> Found:
    if not (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        yield (), f"must be a positive integer, got {_shown(value)}"


def _title(value: object) -> Found:
    if not (printable(value) and value):
        yield (), f"must be one line of text, got {_shown(value)}"


def _prose(value: object) -> Found:
    if not printable(value, also="\n"):
        yield (), f"must be text, got {_shown(value)}; put it in quotes, or leave the key out"


def _scale(value: object) -> Found:
    if value not in SCALE_NAMES:
        yield (), _miss("scale", value, SCALE_NAMES)


def _yes_or_no(value: object) -> Found:
    if not isinstance(value, bool):
        yield (), f"must be true or false, got {_shown(value)}"


def _entries(value: object, what: str, example: str) -> Found:
    """What is wrong with a list as a list."""
    if not isinstance(value, list):
        yield (), f"must be a list of {what}, such as {example}, got {_shown(value)}"
    elif not value:
        yield (), f"must not be empty; write for example {example}"


def _corruptions(value: object) -> Found:
    yield from _entries(value, "corruptions", "[fog, snow] or [weather]")
    seen: set[str] = set()
    for number, name in enumerate(value if isinstance(value, list) else []):
        members = members_of(name)
        if is_chain(name):
            yield (
                (number,),
                f"{_shown(name)} is a chain, which has its own severities; write it under 'shifts'",
            )
        elif not members:
            known = (*corruptions, *SUBSETS)
            yield (number,), corruptions.miss(name) if name in shifts else _miss("corruption", name, known)
        if twice := [member for member in members if member in seen]:
            yield (number,), f"{', '.join(twice)} is in the list already; name each corruption once"
        seen.update(members)


def _severities(value: object) -> Found:
    if value == PUBLISHED:
        return
    yield from _entries(value, "severities", f"[1, 2, 3, 4, 5], or {PUBLISHED}")
    seen: set[object] = set()
    for number, severity in enumerate(value if isinstance(value, list) else []):
        try:
            checked_severity(severity)
        except OptionError:
            yield (number,), f"severity must be a number from 1 to 5, got {_shown(severity)}"
            continue
        if severity in seen:
            yield (number,), f"{severity} is in the list already; name each severity once"
        else:
            seen.add(severity)


def _prepare(value: object) -> Found:
    if value == []:
        return
    yield from _entries(value, "steps", "[resize 256, crop 224]")
    side: int | None = None
    for number, text in enumerate(value if isinstance(value, list) else []):
        try:
            step = Step.parse(text)
        except OptionError as error:
            yield (number,), str(error)
            continue
        if step.action == "crop" and side is not None and step.side > side:
            yield (number,), f"'{step}' cuts out more than the {side} pixels that the step before leaves"
        side = step.side


def _labels(value: object) -> Found:
    if isinstance(value, dict):
        for name, outputs in value.items():
            if not isinstance(outputs, list) or not all(type(one) in (int, str) for one in outputs):
                yield (), f"the outputs of {name!r:.60} must be a list of numbers or names of outputs"
    elif value not in (IDENTITY, *class_lists, *label_maps):
        yield (), _miss("label space", value, (IDENTITY, *class_lists, *label_maps))


def _convention(value: object) -> Found:
    if value not in CONVENTIONS:
        yield (), _miss("convention", value, CONVENTIONS)


def _classes(value: object) -> Found:
    if value not in label_maps:
        yield (), _miss("list of classes", value, label_maps)


def _held_out(value: object) -> Found:
    if value not in protocols:
        yield (), _miss("protocol", value, protocols)


def _shifts(value: object) -> Found:
    yield from _entries(value, "shifts", "[my-blur@2.5, fog@2+jpeg_compression@3]")
    seen: set[object] = set()
    for number, text in enumerate(value if isinstance(value, list) else []):
        try:
            condition = Condition.parse(f"x/{text}")
        except BeaufortError as error:
            yield (number,), str(error)
            continue
        if condition.shift is None and not is_chain(condition.corruption):
            yield (number,), f"{text!r:.60} is a corruption; write it under 'corruptions'"
        if text in seen:
            yield (number,), f"{text} is in the list already; name each shift once"
        seen.add(text)


def _sequences(value: object) -> Found:
    yield from _entries(value, "sequences", "[rotate, snow]")
    seen: set[object] = set()
    for number, name in enumerate(value if isinstance(value, list) else []):
        if not isinstance(name, str) or name not in sequences:
            yield (number,), _miss("sequence", name, sequences)
        if name in seen:
            yield (number,), f"{name} is in the list already; name each sequence once"
        seen.add(name if isinstance(name, str) else None)


def _baseline(value: object) -> Found:
    if not (value is None or (isinstance(value, str) and _BASELINE.fullmatch(value))):
        yield (), f"must be a model's name, such as alexnet, or null, got {_shown(value)}"


def _metrics(value: object) -> Found:
    yield from _entries(value, "metrics", "[mean_accuracy]")
    seen: list[object] = []
    for number, name in enumerate(value if isinstance(value, list) else []):
        known = (*METRICS, *(own for own, one in metrics.items() if one.of_errors))
        if name not in known:
            yield (number,), _miss("metric", name, known)
        elif name in seen:
            yield (number,), f"{name} is in the list already; name each metric once"
        seen.append(name)


_CHECKS: dict[str, Callable[[object], Found]] = {
    "name": _name,
    "version": _version,
    "title": _title,
    "dataset": _name,
    "scale": _scale,
    "corruptions": _corruptions,
    "severities": _severities,
    "clean": _yes_or_no,
    "clean_in_mean": _yes_or_no,
    "prepare": _prepare,
    "baseline": _baseline,
    "metrics": _metrics,
    "labels": _labels,
    "convention": _convention,
    "classes": _classes,
    "held_out": _held_out,
    "counterpart": _name,
    "shifts": _shifts,
    "sequences": _sequences,
    "citation": _prose,
    "notes": _prose,
}
"""Every key that a suite may have."""


def _constants(values: Mapping[str, object]) -> Iterator[tuple[Where, str]]:
    """Each corruption has constants for the scale."""
    scale, names = values["scale"], values["corruptions"]
    assert isinstance(names, list)
    for number, name in enumerate(names):
        without = [
            one for one in members_of(name) if scale in SCALES and scale not in corruptions[one].recipes
        ]
        if without:
            has = ", ".join(corruptions[without[0]].recipes)
            yield (
                ("corruptions", number),
                f"{without[0]} has no constants for the scale {scale!r}; it has them for {has}, "
                "and the scale 'relative' fits any size",
            )


def _published(values: Mapping[str, object]) -> Iterator[tuple[Where, str]]:
    if values["severities"] == PUBLISHED and values["scale"] != "mnist":
        yield (
            ("severities",),
            f"{PUBLISHED!r} is for the scale 'mnist', where each corruption has one published severity; "
            "write for example [1, 2, 3, 4, 5]",
        )


def _metrics_can_be_had(values: Mapping[str, object]) -> Iterator[tuple[Where, str]]:
    metrics = values.get("metrics", [])
    assert isinstance(metrics, list)
    without = values.get("baseline") in (None, "none")
    for number, name in enumerate(metrics):
        if name in ("mce", "relative_mce") and without:
            yield (
                ("metrics", number),
                f"{name} divides by the errors of a baseline; add for example 'baseline: alexnet'",
            )
        if name in STABILITY:
            if "sequences" not in values:
                yield ("metrics", number), f"{name} is about sequences; write for example [mean_accuracy]"
            if name in ("mfr", "mt5d") and without:
                yield (
                    ("metrics", number),
                    f"{name} divides by the values of a baseline; name one, or leave it",
                )
        elif name in ("mce", "relative_mce") and ("corruptions" not in values or "shifts" in values):
            yield ("metrics", number), f"{name} is about corruptions alone; write for example [mean_accuracy]"
        if name == "relative_mce" and not values.get("clean", True):
            yield ("metrics", number), "relative_mce needs the clean images; write 'clean: true'"
    if values.get("clean_in_mean", False) and not values.get("clean", True):
        yield ("clean_in_mean",), "the clean images are not part of the suite; write 'clean: true'"
    some = any(key in values for key in ("corruptions", "shifts", "sequences"))
    if not values.get("clean", True) and not some:
        yield ("clean",), "nothing is left to show; write 'clean: true', or some corruptions"


def _baseline_known(values: Mapping[str, object]) -> Iterator[tuple[Where, str]]:
    """A published network has errors at whole severities only."""
    baseline, severities = values.get("baseline"), values.get("severities", [])
    between = [str(one) for one in severities if one % 1] if isinstance(severities, list) else []
    if baseline in BASELINE_NAMES and between:
        yield (
            ("baseline",),
            f"the errors of {baseline} are known at whole severities only, got {', '.join(between)}; name a "
            "model of the store, or leave the baseline out",
        )


def _alone(values: Mapping[str, object]) -> Iterator[tuple[Where, str]]:
    """Sequences stand for themselves, at a scale that has frames."""
    if "sequences" not in values:
        return
    if other := [key for key in ("corruptions", "severities", "shifts") if key in values]:
        yield (other[0],), "a suite of sequences has nothing else; write a suite of parts, one of them these"
    if values.get("scale") not in SIDES:
        yield (
            ("scale",),
            f"must be one of {', '.join(SIDES)} for sequences, got {_shown(values.get('scale'))}",
        )


_TOGETHER: tuple[tuple[set[str], Callable[[Mapping[str, object]], Iterator[tuple[Where, str]]]], ...] = (
    ({"scale", "corruptions"}, _constants),
    ({"scale", "severities"}, _published),
    ({"metrics", "baseline", "clean", "clean_in_mean"}, _metrics_can_be_had),
    ({"baseline", "severities"}, _baseline_known),
    ({"sequences"}, _alone),
)
"""What is checked once the keys it is about are right."""

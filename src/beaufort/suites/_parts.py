"""Suites of several data sets: each part is a suite of one, and may name the part it is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from beaufort.suites._check import BROKEN, Where, find_mistakes_of_one, needed

_OF_ALL = ("name", "version", "title", "parts", "citation", "notes")


def part_values(values: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """A part as a suite of its own: called like its data set, of the version of the whole."""
    named = {} if "dataset" not in part else {"name": part["dataset"]}
    return {**named, "version": values.get("version", 1), **part}


def find_mistakes_of_parts(values: Mapping[str, Any]) -> Iterator[tuple[Where, str]]:
    """Everything that is wrong with a suite of several data sets."""
    one = {key: value for key, value in values.items() if key in _OF_ALL and key != "parts"}
    yield from find_mistakes_of_one(one, {"name", "version"})
    for key in values:
        if key not in _OF_ALL:
            yield (key,), f"{key!r:.60} is not a key beside 'parts'; known are {', '.join(_OF_ALL)}"
    parts = values["parts"]
    if parts is BROKEN:
        return
    if not isinstance(parts, list) or not parts or not all(isinstance(part, dict) for part in parts):
        yield ("parts",), "parts must be a list of data sets; write for example '- dataset: imagenet-val'"
        return
    sound = True
    for number, part in enumerate(parts):
        whole = part_values(values, part)
        for where, message in find_mistakes_of_one(whole, needed(whole, part=True)):
            sound = False
            yield ("parts", number, *where), message
    if sound:
        yield from _mistakes_between(values, parts)


def _mistakes_between(values: Mapping[str, Any], parts: list[dict[str, Any]]) -> Iterator[tuple[Where, str]]:
    wholes = [part_values(values, part) for part in parts]
    names = [whole["name"] for whole in wholes]
    for number, whole in enumerate(wholes):
        if names.index(whole["name"]) != number:
            message = f"{whole['name']!r} is the name of another part; give this one a name of its own"
            yield ("parts", number, "name"), message
        if whole["version"] != values["version"]:
            yield ("parts", number, "version"), "a part has the version of the suite; leave it out"
        other = whole.get("counterpart")
        if other is None:
            continue
        if other == whole["name"] or other not in names:
            message = f"{other!r} is not another part; known are {', '.join(names)}"
            yield ("parts", number, "counterpart"), message
        elif not wholes[names.index(other)].get("clean", True):
            yield ("parts", number, "counterpart"), f"{other!r} has no clean images to compare with"

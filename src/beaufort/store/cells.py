"""Cells: one model under one condition, described by everything that can change a prediction."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import NoneType
from typing import Any

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One model under one condition.

    The facts are plain JSON values that can change a prediction: digests, constants, seeds, preprocessing.
    Versions, hosts and times are provenance, and not part of a cell.

    >>> Cell({"name": "net"}, {"name": "digits"}, {"corruption": "fog", "severity": 3}).condition_name
    'digits/fog@3'
    """

    model: Facts
    """At least `name`; also the digest of the weights and the preprocessing."""
    data: Facts
    """At least `name`; also the digest of ids, labels and images."""
    condition: Facts
    """`corruption` (None for clean images), `severity` and everything else that determines the pixels."""

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.fingerprint == other.fingerprint

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the facts without the names of the model and the dataset, the same on every machine."""
        facts = {
            "model": _nameless(self.model),
            "data": _nameless(self.data),
            "condition": dict(self.condition),
        }
        return hashlib.blake2b(_canonical(facts).encode(), digest_size=16).hexdigest()

    @property
    def condition_name(self) -> str:
        """`dataset`, `dataset/corruption`, `dataset/corruption@severity` or `dataset/shift@level`."""
        name = str(self.data["name"])
        if corruption := self.condition.get("corruption"):
            name += f"/{corruption}"
            strength = self.condition.get("severity", self.condition.get("level"))
            if strength is not None:
                name += f"@{strength}"
        return name

    @property
    def folder(self) -> str:
        """Folder of its files in a store, partitioned by model and condition."""
        return folder_of(str(self.model["name"]), self.condition_name)

    def to_json(self) -> str:
        """Return the facts as canonical JSON; equal cells give equal text."""
        return _canonical({"model": self.model, "data": self.data, "condition": self.condition})

    @classmethod
    def from_json(cls, text: str | bytes) -> Cell:
        """Return the cell of a `to_json`; a `ValueError` if the text is not one."""
        facts = json.loads(text)
        if not isinstance(facts, dict) or set(facts) != {"model", "data", "condition"}:
            raise ValueError("the facts of a cell must be its model, data and condition")
        json.dumps(facts, ensure_ascii=False).encode()  # half of a surrogate pair cannot be encoded
        for place, (required, types) in _TYPES.items():
            _check(place, facts[place], required, types)
        return cls(facts["model"], facts["data"], facts["condition"])


_TEXT, _NUMBER = (str,), (int, NoneType)
_TYPES: dict[str, tuple[tuple[str, ...], dict[str, tuple[type, ...]]]] = {
    "model": (("name",), {"name": _TEXT}),
    "data": (("name",), {"name": _TEXT, "digest": _TEXT, "order": _NUMBER}),
    "condition": (
        (),
        {
            "corruption": (str, NoneType),
            "severity": (int, float, NoneType),
            "links": (list,),
            "level": _TEXT,
            "seed": _NUMBER,
            "prepare": (list,),
        },
    ),
}
"""Required keys, and the types of those that other code relies on."""

_LARGEST = 2**63 - 1


def _check(place: str, facts: Any, required: Sequence[str], types: Mapping[str, tuple[type, ...]]) -> None:
    if not isinstance(facts, dict) or any(name not in facts for name in required):
        raise ValueError(f"the {place} of a cell must be an object with {', '.join(required) or 'any keys'}")
    for name, accepted in types.items():
        value = facts.get(name)
        if name in facts and (type(value) not in accepted or (type(value) is int and abs(value) > _LARGEST)):
            raise ValueError(f"{place}.{name} of a cell has the wrong type or is too large")
    severity = facts.get("severity")
    if severity is not None and not abs(severity) <= 2**31 - 1:  # NaN is out of range, too
        raise ValueError("the severity of a cell is out of range")


def _canonical(facts: Facts) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _nameless(facts: Facts) -> Facts:
    return {key: value for key, value in facts.items() if key != "name"}


def folder_of(model: str, condition: str) -> str:
    """Return the folder of a cell from the names of its model and condition."""
    return f"model={folder_name(model)}/condition={folder_name(condition)}"


@lru_cache(maxsize=4096)
def folder_name(name: str) -> str:
    """Return the part of a folder's name for a model or a condition: valid in every file system and URL."""
    return re.sub(r"[^A-Za-z0-9._@+-]", "_", name).lstrip(".") or "_"

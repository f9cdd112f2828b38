"""What a prediction is a prediction of: one model under one condition, and all that can change the answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["Cell"]

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One model under one condition.

    The facts are plain JSON values: whatever, when it changes, can change a prediction (digests, constants,
    seeds, preprocessing), and nothing else (no versions, hosts or times: they are provenance).

    >>> Cell({"name": "net"}, {"name": "digits"}, {"corruption": "fog", "severity": 3}).condition_name
    'digits/fog@3'
    """

    model: Facts
    """At least `name`; the digest of its weights, its preprocessing."""
    data: Facts
    """At least `name`; the digest of ids, labels and images."""
    condition: Facts
    """`corruption` (None for clean images), `severity` and what else makes the pixels."""

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.fingerprint == other.fingerprint

    @cached_property
    def fingerprint(self) -> str:
        """A word for exactly these facts, the same wherever and whenever it is made.

        What the model and the data set are called is not among them: a new name changes no answer.
        """
        facts = {
            "model": _nameless(self.model),
            "data": _nameless(self.data),
            "condition": dict(self.condition),
        }
        return hashlib.blake2b(_canonical(facts).encode(), digest_size=16).hexdigest()

    @property
    def condition_name(self) -> str:
        """`dataset`, `dataset/corruption` or `dataset/corruption@severity`."""
        name = str(self.data["name"])
        if corruption := self.condition.get("corruption"):
            name += f"/{corruption}"
            if (severity := self.condition.get("severity")) is not None:
                name += f"@{severity}"
        return name

    @property
    def folder(self) -> str:
        """Where its files lie in a store; a database can prune by it."""
        return f"model={_slug(str(self.model['name']))}/condition={_slug(self.condition_name)}"

    def to_json(self) -> str:
        """All facts as text, in one way only."""
        return _canonical({"model": self.model, "data": self.data, "condition": self.condition})

    @classmethod
    def from_json(cls, text: str | bytes) -> Cell:
        """The cell of such a text."""
        facts = json.loads(text)
        return cls(facts["model"], facts["data"], facts["condition"])


def _canonical(facts: Facts) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _nameless(facts: Facts) -> Facts:
    return {key: value for key, value in facts.items() if key != "name"}


def _slug(name: str) -> str:
    """A name that any file system and any URL takes."""
    return re.sub(r"[^A-Za-z0-9._@+-]", "_", name).lstrip(".") or "_"

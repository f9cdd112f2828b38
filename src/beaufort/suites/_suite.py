"""What a suite is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from beaufort.conditions import Condition
from beaufort.corruptions import expand_names
from beaufort.suites._check import METRICS, PUBLISHED, find_mistakes, key_of
from beaufort.suites._mistakes import Mistake, SuiteError
from beaufort.suites._step import Step

__all__ = ["METRICS", "Suite"]

_PROSE = ("title", "citation", "notes")

_LABEL_SPACES = {
    "imagenet-c": "imagenet-1k",
    "imagenet-c-validation": "imagenet-1k",
    "cifar10-c": "cifar-10",
    "cifar100-c": "cifar-100",
    "mnist-c": "mnist",
    "mnist-c-extra": "mnist",
}
"""What published suites are about; not among their facts, which stay what they were."""

_UNPREPARED = "-unprepared"


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A named list of conditions with its baseline and headline metrics.

    A published suite never changes under its version.
    """

    name: str
    version: int
    """Goes up when anything that can change a number changes."""
    dataset: str
    """The data set that is meant unless another one is given."""
    scale: str
    """Whose constants to use."""
    corruptions: tuple[str, ...]
    severities: tuple[int, ...] | Literal["published"]
    """Each corruption comes at each of them; at scale `mnist` also the one that was published."""
    clean: bool = True
    """Whether the clean images are part of it, as the first condition."""
    clean_in_mean: bool = False
    """Whether the clean images count in `mean_accuracy`, as one row beside the corruptions."""
    prepare: tuple[Step, ...] = ()
    """How a picture is brought to size before it is corrupted."""
    baseline: str | None = None
    """The model whose errors `mce` and `relative_mce` divide by."""
    metrics: tuple[str, ...] = ("mean_accuracy",)
    """The headline numbers, the first one first."""
    title: str = ""
    """One line for people; the name if not given."""
    citation: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)
        if found := list(find_mistakes(self.as_dict())):
            mistakes = [Mistake(None, key_of(where), text) for where, text in found]
            raise SuiteError(f"suite {self.name!r:.60}", mistakes)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Suite:
        """The suite of what `as_dict`, or a file, says; a `SuiteError` if it has mistakes."""
        if found := list(find_mistakes(values)):
            raise SuiteError("suite", [Mistake(None, key_of(where), text) for where, text in found])
        severities = values["severities"]
        lists: dict[str, Any] = {
            "corruptions": expand_names(values["corruptions"], kind="corruption"),
            "severities": severities if severities == PUBLISHED else tuple(sorted(severities)),
        }
        if "prepare" in values:
            lists["prepare"] = tuple(Step.parse(text) for text in values["prepare"])
        if "metrics" in values:
            lists["metrics"] = tuple(values["metrics"])
        return cls(**{**values, **lists})

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def conditions(self, dataset: str | None = None) -> list[Condition]:
        """Every condition in a fixed order: clean, then each corruption from weak to strong.

        Args:
            dataset: the name of another data set to do the same to.
        """
        name = self.dataset if dataset is None else dataset
        levels = [None] if self.severities == PUBLISHED else sorted(self.severities)
        corrupted = [
            Condition(name, corruption, level) for corruption in self.corruptions for level in levels
        ]
        return [*([Condition(name)] if self.clean else []), *corrupted]

    @property
    def label_space(self) -> str | None:
        """The classes that a published suite is about; None if nobody says."""
        return _LABEL_SPACES.get(self.name.removesuffix(_UNPREPARED))

    def unprepared(self) -> Suite:
        """The same for pictures that are left as they are, under a name of its own.

        Pixels differ where a picture would have been brought to size, so these are not the published numbers.

        >>> from beaufort.suites import get_suite
        >>> str(get_suite("imagenet-c").unprepared())
        'imagenet-c-unprepared@1'
        """
        if not self.prepare:
            return self
        title = f"{self.title}; pictures as they are"
        return replace(self, name=f"{self.name}{_UNPREPARED}", title=title, prepare=())

    def as_dict(self) -> dict[str, Any]:
        """What a file of this suite says, ready for JSON or YAML."""
        return {
            "name": self.name,
            "version": self.version,
            "title": self.title,
            "dataset": self.dataset,
            "scale": self.scale,
            "corruptions": list(self.corruptions),
            "severities": self.severities if self.severities == PUBLISHED else list(self.severities),
            "clean": self.clean,
            "clean_in_mean": self.clean_in_mean,
            "prepare": [str(step) for step in self.prepare],
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            "citation": self.citation,
            "notes": self.notes,
        }

    def facts(self) -> dict[str, Any]:
        """All that can change a number: everything but title, citation and notes."""
        return {key: value for key, value in self.as_dict().items() if key not in _PROSE}

    @property
    def digest(self) -> str:
        """The sha256 of the facts as JSON, keys sorted, without spaces."""
        text = json.dumps(self.facts(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

"""Suites: their fields, conditions and digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from beaufort._core.errors import BeaufortError
from beaufort.corruptions import Severity, expand_names, validate_severity
from beaufort.data import Step
from beaufort.data.labels import Grouping, class_lists, label_maps
from beaufort.suites._schema import PUBLISHED, find_mistakes, key_of, part_values
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import frame_shifts, frames_shift_name
from beaufort.suites.streams import NAME as STREAM
from beaufort.suites.streams import ORDERS

_PROSE = ("title", "citation", "notes")
_UNPREPARED = "-unprepared"
MOST_LISTED = 20
"""Mistakes that a message lists; `SuiteError.mistakes` has all."""

_LABEL_SPACES = {
    "imagenet-c": "imagenet-1k",
    "imagenet-c-validation": "imagenet-1k",
    "robustbench-imagenet-c": "imagenet-1k",
    "cifar10-c": "cifar-10",
    "cifar100-c": "cifar-100",
    "mnist-c": "mnist",
    "mnist-c-extra": "mnist",
    "imagenet-c-bar": "imagenet-1k",
    "imagenet-c-and-bar": "imagenet-1k",
    "cifar10-c-bar": "cifar-10",
    "cifar10-c-and-bar": "cifar-10",
    "imagenet-p": "imagenet-1k",
    "cifar10-p": "cifar-10",
    "imagenet-c-continual": "imagenet-1k",
    **dict.fromkeys((f"cifar10-c-{order}" for order in (*ORDERS, "correlated")), "cifar-10"),
}
"""Classes of published suites; not among their facts, so that digests stay the same."""


class Mistake(NamedTuple):
    """One mistake in a suite."""

    line: int | None
    """Line in the file, from 1; None for a suite that is not from a file."""
    key: str
    """Key with the invalid value; empty if the mistake is not about one."""
    message: str

    def located(self, source: str) -> str:
        """Return the message with its place.

        >>> Mistake(7, "severities", "6 is not a severity").located("my.yaml")
        'my.yaml:7: severities: 6 is not a severity'
        """
        place = source if self.line is None else f"{source}:{self.line}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


class SuiteError(BeaufortError, ValueError):
    """A suite with mistakes, which are under `mistakes` in the order of their lines."""

    def __init__(self, source: str, mistakes: Sequence[Mistake]) -> None:
        super().__init__(source, mistakes)
        self.source = source
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: mistake.line or 0))

    def __str__(self) -> str:
        lines = [mistake.located(self.source) for mistake in self.mistakes[:MOST_LISTED]]
        more = len(self.mistakes) - len(lines)
        return "\n".join([*lines, *([f"and {more} more"] if more else [])])


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A named list of conditions with its baseline and headline metrics.

    A published suite never changes under its version. A run renames a suite that differs from the published
    suite of its name to `<name>-changed`.
    """

    name: str
    version: int
    """Raised when anything that can change a number changes."""
    dataset: str = ""
    """Name of the dataset; empty for a suite of parts."""
    scale: str = "auto"
    """Whose constants to use."""
    corruptions: tuple[str, ...] = ()
    severities: tuple[Severity, ...] | Literal["published"] = ()
    """Severities of each corruption; `published` for the one that MNIST-C was published with."""
    shifts: tuple[str, ...] = ()
    """Other changes of the images: chains of corruptions (`fog@2+jpeg_compression@3`), attacks
    (`pgd-linf@0.5/255`). Streams (`stream@cifar/continual,batch=200,seed=0`) stand alone."""
    sequences: tuple[str, ...] = ()
    """Sequences whose frames are one condition each; cannot be combined with corruptions and shifts."""
    clean: bool = True
    """Whether the clean images are the first condition."""
    clean_in_mean: bool = False
    """Whether the clean images count in `mean_accuracy`, as one row beside the corruptions."""
    prepare: tuple[Step, ...] = ()
    """How an image is resized and cropped before it is corrupted."""
    baseline: str | None = None
    """Model whose errors `mce` and `relative_mce` divide by."""
    metrics: tuple[str, ...] = ("mean_accuracy",)
    """Headline metrics; the first is the most important."""
    title: str = ""
    """One line for people; the name by default."""
    citation: str = ""
    notes: str = ""
    labels: str | tuple[tuple[str, tuple[int | str, ...]], ...] | None = None
    """Which outputs count as which class: a class list, a label map, `identity`, or outputs by class."""
    convention: str | None = None
    """Which outputs compete, `restricted` or `all`; None for the convention of the evaluation."""
    classes: str | None = None
    """Label map whose classes are evaluated; None for all images."""
    held_out: str | None = None
    """Protocol whose held-out images are evaluated; None for all images."""
    images: str | None = None
    """Published selection of images that is evaluated; None for all images."""
    counterpart: str | None = None
    """Part whose clean images these are compared with; None for their own clean images."""
    parts: tuple[Suite, ...] = ()
    """Suites of one dataset each; only name, version, title, citation and notes are set beside them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)
        versions = {"parts": [part.as_dict() for part in self.parts]} if self.parts else {}
        _validate(f"suite {self.name!r:.60}", {**self.as_dict(), **versions})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Suite:
        """Return the suite that `as_dict` or a file describes; a `SuiteError` lists all mistakes."""
        _validate("suite", values)
        given = dict(values)
        if "parts" in given:
            given["parts"] = tuple(cls.from_dict(part_values(values, part)) for part in given["parts"])
            return cls(**given)
        if "corruptions" in given:
            given["corruptions"] = expand_names(given["corruptions"], kind="corruption")
        if given.get("severities", PUBLISHED) != PUBLISHED:
            given["severities"] = tuple(sorted(map(validate_severity, given["severities"])))
        for key in ("metrics", "shifts", "sequences"):
            if key in given:
                given[key] = tuple(given[key])
        given["prepare"] = tuple(map(Step.parse, given.get("prepare", ())))
        if isinstance(labels := given.get("labels"), Mapping):
            given["labels"] = tuple((name, tuple(outputs)) for name, outputs in labels.items())
        return cls(**given)

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def conditions(self, dataset: str | None = None) -> list[Condition]:
        """Return every condition in a fixed order: clean, corruptions by severity, other shifts, frames.

        Args:
            dataset: name of another dataset.
        """
        if self.parts:
            return [condition for part in self.parts for condition in part.conditions()]
        name = self.dataset if dataset is None else dataset
        levels = [None] if self.severities == PUBLISHED else sorted(self.severities)
        corrupted = [
            Condition(name, corruption, level) for corruption in self.corruptions for level in levels
        ]
        frames = [frame for sequence in self.sequences for frame in frame_shifts(sequence, self.scale)]
        others = [Condition.parse(f"{name}/{shift}") for shift in (*self.shifts, *frames)]
        return [*([Condition(name)] if self.clean else []), *corrupted, *others]

    @property
    def streamed(self) -> bool:
        """Whether its conditions are streams, for models that adapt."""
        return any(shift.startswith(f"{STREAM}@") for shift in self.shifts)

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the corruptions, other shifts and sequences, without their strengths."""
        done = (Condition.parse(f"x/{shift}").corruption for shift in self.shifts)
        others = dict.fromkeys(name for name in done if name is not None)
        return (*self.corruptions, *others, *map(frames_shift_name, self.sequences))

    def steps(self, family: str | None) -> tuple[Step, ...]:
        """Return how images are prepared for one of `families`, or for None, the clean images.

        Frames are cropped when they are made, so that geometric changes see the pixels around the crop.
        """
        frames = family is not None and family in map(frames_shift_name, self.sequences)
        cropped = bool(self.prepare) and self.prepare[-1].action == "crop"
        return self.prepare[:-1] if frames and cropped else self.prepare

    def part(self, name: str) -> Suite:
        """Return the part of a name."""
        return next(part for part in self.parts if part.name == name)

    def without_clean(self) -> Suite:
        """Return the suite without clean images, under the same name, for stored images that lack them."""
        metrics = tuple(name for name in self.metrics if name != "relative_mce") or ("mean_accuracy",)
        return replace(self, clean=False, clean_in_mean=False, metrics=metrics)

    def unprepared(self) -> Suite:
        """Return the suite for images that are neither resized nor cropped, under another name.

        >>> from beaufort.suites import get_suite
        >>> str(get_suite("imagenet-c").unprepared())
        'imagenet-c-unprepared@1'
        """
        if not self.prepare:
            return self
        title = f"{self.title}; images not resized"
        return replace(self, name=f"{self.name}{_UNPREPARED}", title=title, prepare=())

    @property
    def label_space(self) -> str | None:
        """Class list of the suite; None if unknown."""
        if isinstance(self.labels, str) and self.labels in class_lists:
            return self.labels
        return _LABEL_SPACES.get(self.name.removesuffix(_UNPREPARED))

    @property
    def grouping(self) -> str | Grouping | None:
        """Which outputs count as which class, for `find_label_space`; None if names decide."""
        if isinstance(self.labels, tuple):
            return dict(self.labels)
        if self.labels is None or self.labels in class_lists:
            return None
        return label_maps[self.labels].grouping if self.labels in label_maps else self.labels

    def as_dict(self) -> dict[str, Any]:
        """Return the suite as a file describes it, ready for JSON or YAML."""
        values: dict[str, Any] = {"name": self.name, "version": self.version, "title": self.title}
        if self.parts:
            parts = [part.as_dict() for part in self.parts]
            for part in parts:
                del part["version"]
            return {**values, "parts": parts, "citation": self.citation, "notes": self.notes}
        values["dataset"] = self.dataset
        corrupted = self.corruptions or self.severities
        if corrupted or self.scale != "auto":
            values["scale"] = self.scale
        if corrupted:
            values["corruptions"] = list(self.corruptions)
            values["severities"] = PUBLISHED if self.severities == PUBLISHED else list(self.severities)
        for key in ("shifts", "sequences"):
            if some := getattr(self, key):
                values[key] = list(some)
        values |= {
            "clean": self.clean,
            "clean_in_mean": self.clean_in_mean,
            "prepare": [str(step) for step in self.prepare],
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            "citation": self.citation,
            "notes": self.notes,
        }
        for key in ("labels", "convention", "classes", "held_out", "images", "counterpart"):
            value = getattr(self, key)
            if isinstance(value, tuple):
                value = {name: list(outputs) for name, outputs in value}
            if value is not None:
                values[key] = value
        return values

    def facts(self) -> dict[str, Any]:
        """Return all that can change a number: everything but title, citation and notes."""
        values = {key: value for key, value in self.as_dict().items() if key not in _PROSE}
        if self.parts:
            values["parts"] = [part.facts() for part in self.parts]
        return values

    @property
    def digest(self) -> str:
        """The sha256 of the facts as JSON, keys sorted, without spaces."""
        text = json.dumps(self.facts(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _validate(source: str, values: Mapping[str, Any]) -> None:
    if found := list(find_mistakes(values)):
        raise SuiteError(source, [Mistake(None, key_of(where), message) for where, message in found])

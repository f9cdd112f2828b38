"""What a suite is: its fields, its conditions and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from beaufort._core.errors import BeaufortError
from beaufort.corruptions import Severity, expand_names, validate_severity
from beaufort.data import Step
from beaufort.data.labels import Grouping, class_lists, label_maps
from beaufort.suites._schema import PUBLISHED, find_mistakes, key_of, part_values
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import frame_shifts, frames_shift_name

_PROSE = ("title", "citation", "notes")
_UNPREPARED = "-unprepared"
_SHOWN = 20
"""Mistakes that a message lists; the error has all."""

_LABEL_SPACES = {
    "imagenet-c": "imagenet-1k",
    "imagenet-c-validation": "imagenet-1k",
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
}
"""What published suites are about; not among their facts, which stay what they were."""


class Mistake(NamedTuple):
    """One thing that is wrong, and where."""

    line: int | None
    """In the file, from 1; None for a suite that is not from a file."""
    key: str
    """The key whose value is wrong; empty if it is not about one."""
    message: str

    def located(self, source: str) -> str:
        """As a line that names the place.

        >>> Mistake(7, "severities", "6 is not a severity").located("my.yaml")
        'my.yaml:7: severities: 6 is not a severity'
        """
        place = source if self.line is None else f"{source}:{self.line}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


class SuiteError(BeaufortError, ValueError):
    """A suite with mistakes; `mistakes` has them in the order of their lines."""

    def __init__(self, source: str, mistakes: Sequence[Mistake]) -> None:
        super().__init__(source, mistakes)
        self.source = source
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: mistake.line or 0))

    def __str__(self) -> str:
        lines = [mistake.located(self.source) for mistake in self.mistakes[:_SHOWN]]
        more = len(self.mistakes) - len(lines)
        return "\n".join([*lines, *([f"and {more} more"] if more else [])])


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A named list of conditions with its baseline and headline metrics.

    A published suite never changes under its version: give one that is made from it another name. A run calls
    a suite that says something else under a published name `<name>-changed`.
    """

    name: str
    version: int
    """Goes up when anything that can change a number changes."""
    dataset: str = ""
    """The data set that is meant unless another one is given; empty for a suite of parts."""
    scale: str = "auto"
    """Whose constants to use."""
    corruptions: tuple[str, ...] = ()
    severities: tuple[Severity, ...] | Literal["published"] = ()
    """Each corruption comes at each of them; at scale `mnist` also the one that was published."""
    shifts: tuple[str, ...] = ()
    """What else is done to the images, as it stands behind the data set: chains of corruptions
    (`fog@2+jpeg_compression@3`), attacks (`pgd-linf@0.5/255`)."""
    sequences: tuple[str, ...] = ()
    """Sequences of frames that are shown of each image, one frame a condition; beside nothing else."""
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
    labels: str | tuple[tuple[str, tuple[int | str, ...]], ...] | None = None
    """Which outputs count as which class: a class list, a label map, `identity`, or outputs by class."""
    convention: str | None = None
    """Which outputs compete, `restricted` or `all`; as `evaluate` says if None."""
    classes: str | None = None
    """A label map: only images of its classes are shown."""
    held_out: str | None = None
    """A protocol: only images that it holds out from training are shown."""
    counterpart: str | None = None
    """The part of the same suite whose clean images these are compared with; their own clean ones if None."""
    parts: tuple[Suite, ...] = ()
    """Suites of one data set each; all else but words is theirs then."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)
        _validate(f"suite {self.name!r:.60}", self._given())

    def _given(self) -> dict[str, Any]:
        """The fields that are set, by the keys of a file."""
        if self.parts:
            words = {key: getattr(self, key) for key in ("name", "version", *_PROSE)}
            return {**words, "parts": [part._given() for part in self.parts]}
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.scale == "auto" and not (self.corruptions or self.severities or self.sequences):
            del given["scale"]
        return {key: value for key, value in given.items() if value not in ((), None, "")}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Suite:
        """The suite of what `as_dict`, or a file, says; a `SuiteError` if it has mistakes."""
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
        """Every condition in a fixed order: clean, each corruption from weak to strong, then other shifts.

        Of a sequence every frame is one.

        Args:
            dataset: the name of another dataset to do the same to.
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
    def families(self) -> tuple[str, ...]:
        """What is done to the images, whatever its strength: corruptions, other shifts, frames."""
        done = (Condition.parse(f"x/{shift}").corruption for shift in self.shifts)
        others = dict.fromkeys(name for name in done if name is not None)
        return (*self.corruptions, *others, *map(frames_shift_name, self.sequences))

    def steps(self, family: str | None) -> tuple[Step, ...]:
        """How images are brought to size for one of `families`, or for None, the clean ones.

        Frames are cut out of the middle when they are made, so that geometry sees what is around it.
        """
        frames = family is not None and family in map(frames_shift_name, self.sequences)
        cropped = bool(self.prepare) and self.prepare[-1].action == "crop"
        return self.prepare[:-1] if frames and cropped else self.prepare

    def part(self, name: str) -> Suite:
        """A part by its name."""
        return next(part for part in self.parts if part.name == name)

    def without_clean(self) -> Suite:
        """The same without clean images, for stored images that come without; it keeps its name."""
        metrics = tuple(name for name in self.metrics if name != "relative_mce") or ("mean_accuracy",)
        return replace(self, clean=False, clean_in_mean=False, metrics=metrics)

    def unprepared(self) -> Suite:
        """The same for images that are left as they are, under a name of its own.

        Pixels differ where an image would have been brought to size, so these are not the published numbers.

        >>> from beaufort.suites import get_suite
        >>> str(get_suite("imagenet-c").unprepared())
        'imagenet-c-unprepared@1'
        """
        if not self.prepare:
            return self
        title = f"{self.title}; pictures as they are"
        return replace(self, name=f"{self.name}{_UNPREPARED}", title=title, prepare=())

    @property
    def label_space(self) -> str | None:
        """The classes that a suite is about, if they are a list; None if nobody says."""
        if isinstance(self.labels, str) and self.labels in class_lists:
            return self.labels
        return _LABEL_SPACES.get(self.name.removesuffix(_UNPREPARED))

    @property
    def grouping(self) -> str | Grouping | None:
        """How labels and outputs come together, as `find_label_space` takes it; None if names decide."""
        if isinstance(self.labels, tuple):
            return dict(self.labels)
        if self.labels is None or self.labels in class_lists:
            return None
        return label_maps[self.labels].grouping if self.labels in label_maps else self.labels

    def as_dict(self) -> dict[str, Any]:
        """What a file of this suite says, ready for JSON or YAML."""
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
        for key in ("labels", "convention", "classes", "held_out", "counterpart"):
            value = getattr(self, key)
            if isinstance(value, tuple):
                value = {name: list(outputs) for name, outputs in value}
            if value is not None:
                values[key] = value
        return values

    def facts(self) -> dict[str, Any]:
        """All that can change a number: everything but title, citation and notes."""
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
    """Raise all mistakes; unlike a file, a suite made in Python may consist of its clean images."""
    found = list(find_mistakes(values, clean_alone=True))
    if found:
        raise SuiteError(source, [Mistake(None, key_of(where), message) for where, message in found])

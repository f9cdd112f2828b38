"""What a suite is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from beaufort.corruptions import Severity, checked_severity, expand_names
from beaufort.data import Step
from beaufort.data.labels import Grouping, class_lists, label_maps
from beaufort.suites._check import (
    PUBLISHED,
    Where,
    find_mistakes,
    find_mistakes_of_one,
    key_of,
    needed,
)
from beaufort.suites._mistakes import Mistake, SuiteError
from beaufort.suites._parts import part_values
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import frames_of, kind_of_frames

_PROSE = ("title", "citation", "notes")

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

_UNPREPARED = "-unprepared"

_DIGESTS = {
    "imagenet-c@1": "0a81b274f2b08eb8b8e40a6a003b07a10d05e6386fa16e5f8e19732ac6c4e0d6",
    "imagenet-c-validation@1": "249c4cd2fec08a7c7255a3b0f48faf7cc0821c90d48c9b8726f72dc120c34e0b",
    "tiny-imagenet-c@1": "1c9bc1a6a3149f6d59bd8dffcb6ce1c0590c228487f4bc169a1d9e6e516c461f",
    "cifar10-c@1": "1bec8b14a6ea93edce65cba244ab3f6518f8f5926b83017d6ddbaedc55a768b8",
    "cifar100-c@1": "c425bf91e55344217966696b0c3025e918463c4869fb7db3544c283a76d8e6d9",
    "mnist-c@1": "a87ae482bc757a53eb646b98d8c5328bc98e1eb119c08145632edf9f78274fbb",
    "mnist-c-extra@1": "8aa4cbcf63592adb581b120dc725ba0afab04383df00a7d5b9303f7db2b9a6e0",
    "imagenet-c-bar@1": "2bfb0bec63ac5bc4d883bee29765b0a4d05bf7f32a60a0c8151dc487c19703c7",
    "imagenet-c-and-bar@1": "bd682dc173e7e03b97c8fbde0ed956a409148a1562aeff417ef79ed5a5735e68",
    "cifar10-c-bar@1": "eb630f916aa2023b5fbfcd51ab188521da8689e9afc1917c2022de7238e0a60f",
    "cifar10-c-and-bar@1": "92ae3ed18f5c445a47ff3bb8bcee2b25ae36227b235a47c39a597572e744dd3f",
    "imagenet-p@1": "9dc62616474ee1033e88bb0528ea086d83b2109864ed88b3b44955de79ed2f6c",
    "tiny-imagenet-p@1": "30a09909fa8ba62deb759a08b81ef31bf8e21155b0bd4ca25d06a7d9a0627a5b",
    "cifar10-p@1": "243cadaadd14a667141e27633bd258b1767cf8c7f4944e47afa70460df0c990f",
    "testbed-pgd@1": "1825359a63ca054a851444c38ce72bfe20eb5696d179e6ca5fc64ae26e7ab1da",
    "photos@1": "a74127f11896e28f0a72f8f1e11bd4f293d8b6b4796a8071c2aa486c8a2646a1",
}
"""Of the published suites: one that says something else under such a name is another suite."""

_SHIFT_DIGESTS = {
    "imagenetv2-matched-frequency@1": "c9a70959ebb306562f3a5b00b1a2950d3afcbde15c2e1cf577659e4071d83ebb",
    "imagenetv2-threshold-0.7@1": "74ad3b473e43b2c98872e95c4e66b9e243203123a10d44d0a5446dbb884e5212",
    "imagenetv2-top-images@1": "736c37613bbe7f214308e8a94cbf563edb715e984253e5061ac40cb94afffa82",
    "imagenet-a@1": "8c6e9513633220f0397bb04c300f4ffbda96b9a9e7ab2fe72be35119e472373a",
    "imagenet-r@1": "81acd78838b3dfa6375e48d3f37a1bbdd8ba5c886887ce73b709ef770bf82912",
    "imagenet-sketch@1": "31b8a0d6c43667433c34369cc165002d564d7c145af4c945060d72c6b1c91dfa",
    "objectnet@1": "28600580cbcdddba61f3b9f8e3288269234921b74a1e5ea1ad183d621b13898b",
    "objectnet-2020@1": "a34dfd1ecce2ff903604dea460723558e0b15fafdb805c8353ec6bf0400adac6",
    "imagenet-d@1": "8077f58dcc84e1f5ab6fb3348f4ca7d079f71dd693881ec1762f2f209545ba80",
    "imagenet-d-113@1": "a0dc09584b1aa5fe86c3a8592ea87773a8cfe68991d18aef39389f0eeb746ec4",
    "vid-robust@1": "dd9f1efce538aaf3d0faf8d6588c3a11c028ea23c961e585c610e0eeab3d1e38",
    "ytbb-robust@1": "f4ef473b5ad02b195198f3321e95e982eb585f6500fff591c6d1114b35085cb9",
    "stylized-imagenet@1": "59ba9e9761479a588a44accbbfe5400c1b24a6f7b620419cb71ecbf8ab90321f",
    "icons-50-style@1": "eb4271bc981023d5aa588c43cd6460aef53b1575c2e6764c3541a5572b2f4eb4",
    "icons-50-subtype@1": "4cc873e86ff35bbd767c38f6e3368069877a5763674107cbc91a3b8bb3d5b25d",
    "icons-50-subtype-released@1": "28714b9ba48fa821e7f0e04882ac5f7249bc02ccd81ff1c2d61281d4a5489c75",
    "icons-50-traditional@1": "8771c202a2897a25fc3c1302b0634657669911080ca3ef48382cbeee186c005c",
    "icons-50-traditional-released@1": "1199abb50553cc7ac864bfad2c5e0bee6c3a34acaf863c69d9cc35f85933d10f",
}
"""The same of suites with parts; a part may be called like one of them."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A named list of conditions with its baseline and headline metrics.

    A published suite never changes under its version: one that is made from it by changing something gets
    another name.
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
        if found := list(_mistakes_in(self.as_dict())):
            mistakes = [Mistake(None, key_of(where), text) for where, text in found]
            raise SuiteError(f"suite {self.name!r:.60}", mistakes)
        published = _SHIFT_DIGESTS if self.parts else _DIGESTS
        if self.digest != published.get(str(self), self.digest):
            object.__setattr__(self, "title", f"{self.title}, changed")
            object.__setattr__(self, "name", f"{self.name}-changed")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Suite:
        """The suite of what `as_dict`, or a file, says; a `SuiteError` if it has mistakes."""
        if found := list(_mistakes_in(values)):
            raise SuiteError("suite", [Mistake(None, key_of(where), text) for where, text in found])
        if "parts" in values:
            each = [part_values(values, part) for part in values["parts"]]
            parts = tuple(cls._of_one(part)._called(part["name"], part.get("title", "")) for part in each)
            return cls(**{**values, "parts": parts})
        return cls._of_one(values)

    @classmethod
    def _of_one(cls, values: Mapping[str, Any]) -> Self:
        lists: dict[str, Any] = {}
        if "corruptions" in values:
            severities = values["severities"]
            lists["corruptions"] = expand_names(values["corruptions"], kind="corruption")
            lists["severities"] = severities if severities == PUBLISHED else _in_order(severities)
        if "prepare" in values:
            lists["prepare"] = tuple(Step.parse(text) for text in values["prepare"])
        for key in ("metrics", "shifts", "sequences"):
            if key in values:
                lists[key] = tuple(values[key])
        if isinstance(labels := values.get("labels"), Mapping):
            lists["labels"] = tuple((name, tuple(outputs)) for name, outputs in labels.items())
        return cls(**{**values, **lists})

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def conditions(self, dataset: str | None = None) -> list[Condition]:
        """Every condition in a fixed order: clean, each corruption from weak to strong, then other shifts.

        Of a sequence every frame is one.

        Args:
            dataset: the name of another data set to do the same to.
        """
        if self.parts:
            return [condition for part in self.parts for condition in part.conditions()]
        name = self.dataset if dataset is None else dataset
        levels = [None] if self.severities == PUBLISHED else sorted(self.severities)
        corrupted = [
            Condition(name, corruption, level) for corruption in self.corruptions for level in levels
        ]
        frames = [frame for sequence in self.sequences for frame in frames_of(sequence, self.scale)]
        others = [Condition.parse(f"{name}/{shift}") for shift in (*self.shifts, *frames)]
        return [*([Condition(name)] if self.clean else []), *corrupted, *others]

    @property
    def families(self) -> tuple[str, ...]:
        """What is done to the images, whatever its strength: corruptions, other shifts, frames."""
        done = (Condition.parse(f"x/{shift}").corruption for shift in self.shifts)
        others = dict.fromkeys(name for name in done if name is not None)
        return (*self.corruptions, *others, *map(kind_of_frames, self.sequences))

    def steps(self, family: str | None) -> tuple[Step, ...]:
        """How pictures are brought to size for one of `families`, or for None, the clean ones.

        Frames are cut out of the middle when they are made, so that geometry sees what is around it.
        """
        frames = family is not None and family in map(kind_of_frames, self.sequences)
        cropped = bool(self.prepare) and self.prepare[-1].action == "crop"
        return self.prepare[:-1] if frames and cropped else self.prepare

    def part(self, name: str) -> Suite:
        """A part by its name."""
        return next(part for part in self.parts if part.name == name)

    def without_clean(self) -> Suite:
        """The same without clean images, for stored pictures that come without; it keeps its name."""
        metrics = tuple(name for name in self.metrics if name != "relative_mce") or ("mean_accuracy",)
        return replace(self, clean=False, metrics=metrics)._called(self.name, self.title)

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

    def _called(self, name: str, title: str) -> Self:
        """The same under a name that may be a published suite's."""
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "title", title or name)
        return self

    @property
    def label_space(self) -> str | None:
        """The classes that a suite is about, if they are a list; None if nobody says."""
        if isinstance(self.labels, str) and self.labels in class_lists:
            return self.labels
        return _LABEL_SPACES.get(self.name.removesuffix(_UNPREPARED))

    @property
    def grouping(self) -> str | Grouping | None:
        """How labels and outputs come together, as `find_space` takes it; None if names decide."""
        if isinstance(self.labels, tuple):
            return dict(self.labels)
        if self.labels is None or self.labels in class_lists:
            return None
        return label_maps[self.labels].grouping if self.labels in label_maps else self.labels

    def as_dict(self) -> dict[str, Any]:
        """What a file of this suite says, ready for JSON or YAML."""
        words = {"name": self.name, "version": self.version, "title": self.title}
        if self.parts:
            parts = [_without(part.as_dict(), "version") for part in self.parts]
            return {**words, "parts": parts, "citation": self.citation, "notes": self.notes}
        severities = self.severities if self.severities == PUBLISHED else list(self.severities)
        made = {"scale": self.scale, "corruptions": list(self.corruptions), "severities": severities}
        alone = {} if self.scale == "auto" else {"scale": self.scale}
        films = {"scale": self.scale, "sequences": list(self.sequences)}
        labels = self.labels
        if isinstance(labels, tuple):
            more: dict[str, Any] = {"labels": {name: list(outputs) for name, outputs in labels}}
        else:
            more = {"labels": labels}
        more |= {"convention": self.convention, "classes": self.classes}
        more |= {"held_out": self.held_out, "counterpart": self.counterpart}
        return {
            **words,
            "dataset": self.dataset,
            **(made if self.corruptions or self.severities else alone),
            **({"shifts": list(self.shifts)} if self.shifts else {}),
            **(films if self.sequences else {}),
            "clean": self.clean,
            "clean_in_mean": self.clean_in_mean,
            "prepare": [str(step) for step in self.prepare],
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            "citation": self.citation,
            "notes": self.notes,
            **{key: value for key, value in more.items() if value is not None},
        }

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


def _mistakes_in(values: Mapping[str, Any]) -> Iterable[tuple[Where, str]]:
    """As `find_mistakes`, which files are held to; a suite made in Python may show its clean images alone."""
    if "parts" in values:
        return find_mistakes(values)
    return find_mistakes_of_one(values, needed(values, part=True))


def _in_order(severities: Iterable[object]) -> tuple[Severity, ...]:
    """From weak to strong; those that are whole as integers, as a file may say 3.0."""
    return tuple(sorted(map(checked_severity, severities)))


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}

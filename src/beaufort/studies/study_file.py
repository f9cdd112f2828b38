"""Studies as YAML files: their data, conditions, arms, questions and texts, and the settings of one run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.files import write_bytes
from beaufort._core.registry import unknown_message
from beaufort.corruptions import SUBSETS
from beaufort.training import Recipe, get_recipe

STUDIES = ("imagenet-c-enhancements", "icons-50", "mined-digits", "mnist-c")
"""The studies in the package."""

_FILES = files("beaufort.studies") / "data"
_KEYS = frozenset(
    (
        *("title", "folder", "seeds", "rule", "datasets", "locations", "conditions", "predict", "keep"),
        *("trained_on", "base", "arms", "questions", "small_images", "rehearsal"),
    )
)
"""Keys of a study's file; those in the package have more, for their own tables."""
_ARM_KEYS = frozenset(("title", "recipe", "changes", "start", "tests", "filter", "folder", "extra", "for"))
_COMPARISON = re.compile(
    r"(?P<arm>\S+)(?: against (?P<control>\S+))? (?P<metric>.+) (?P<sign>[<>]) (?P<bound>-?[\d.]+)"
)
_METRICS = (
    "clean error",
    "mean error",
    "mCE",
    "relative mCE",
    "noise CE",
    "blur CE",
    "weather CE",
    "digital CE",
    "other CE",
)


def definition(study: str) -> dict[str, Any]:
    """Return the declarations of a study: one in the package by its name, or a YAML file."""
    if study in STUDIES:
        return _read(study, 0)
    if Path(study).suffix not in (".yaml", ".yml"):
        raise UnknownNameError(unknown_message("study", study, STUDIES))
    try:
        return _read(study, Path(study).stat().st_mtime_ns)
    except OSError as error:
        raise OptionError(f"cannot read {study}: {error.strerror or error}") from None


@lru_cache(maxsize=16)
def _read(study: str, changed: int) -> dict[str, Any]:
    import yaml

    text = (_FILES / f"{study}.yaml" if study in STUDIES else Path(study)).read_text(encoding="utf-8")
    try:
        values = yaml.safe_load(text)
    except (RecursionError, yaml.YAMLError) as error:
        raise OptionError(f"cannot read {study} as YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict) or not {"title", "datasets", "arms"} <= values.keys():
        raise OptionError(f"{study} must have the keys title, datasets, arms and questions")
    return values


def validate_study(settings: StudySettings) -> None:
    """Check a file of one's own for what would otherwise fail far from its cause."""
    study, values = settings.study, settings.file
    if study in STUDIES:
        return
    for key in values:
        if key not in _KEYS:
            raise OptionError(f"{study}: {unknown_message('key', key, sorted(_KEYS))}")
    for name, arm in values["arms"].items():
        for key in arm:
            if key not in _ARM_KEYS:
                raise OptionError(f"{study}, arm {name}: {unknown_message('key', key, sorted(_ARM_KEYS))}")
    arms = settings.arms
    if (base := values.get("base")) not in arms:
        raise OptionError(
            f"{study}: base must be the arm whose errors normalize those of the other arms, got {base!r}"
        )
    for arm in arms.values():
        for other in filter(None, (arm.start, arm.tests)):
            if other not in arms:
                raise OptionError(f"{study}, arm {arm.name}: {unknown_message('arm', other, sorted(arms))}")
        if not arm.tests and arm.configured(settings, arm.start).architecture.startswith("python:"):
            raise OptionError(f"{study}, arm {arm.name}: a study must not name Python code")
    for name, question in values.get("questions", {}).items():
        for _, control, patterns in question["rows"]:
            for pattern in (control, *patterns):
                if not settings.matching([pattern]):
                    raise OptionError(f"{study}, question {name}: no arm matches {pattern!r}")
        shown = (f"{text} < 0" for text in question.get("also", ()))
        for text in (*question["confirmed"], *question["refuted"], *shown):
            metric = parse_comparison(text).metric
            metrics = (*_METRICS, "extra CE", "lower CEs", *(f"{one} CE" for one in settings.corruptions))
            if metric not in metrics:
                raise OptionError(f"{study}, {text!r}: {unknown_message('metric', metric, metrics)}")


class ParsedComparison(NamedTuple):
    """An arm's difference from its control in a metric, and what it is compared with."""

    arm: str
    """A name or a pattern."""
    control: str
    """Empty for any."""
    metric: str
    sign: str
    bound: float


def parse_comparison(text: str) -> ParsedComparison:
    """Return the parts of a comparison in a study's file.

    >>> parse_comparison("stability-* mCE > -1")
    ParsedComparison(arm='stability-*', control='', metric='mCE', sign='>', bound=-1.0)
    """
    match = _COMPARISON.fullmatch(str(text))
    if match is None:
        raise OptionError(f"a comparison must be written as 'ARM METRIC < NUMBER', got {text!r:.80}")
    control, bound = match["control"] or "", float(match["bound"])
    return ParsedComparison(match["arm"], control, match["metric"], match["sign"], bound)


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """What one run of a study does; tasks receive it, and caches use it as their key."""

    study: str
    device: str = "auto"
    seeds: int = 3
    rehearse: bool = False
    data: tuple[tuple[str, str], ...] = ()
    """Locations of datasets by name."""

    @property
    def file(self) -> dict[str, Any]:
        return definition(self.study)

    @property
    def rehearsal(self) -> Mapping[str, Any]:
        """What differs in a rehearsal; empty in a full run."""
        return self.file.get("rehearsal", {}) if self.rehearse else {}

    def dataset(self, role: str) -> str:
        """Return a dataset of the study, such as `train`, at its given location; empty without one."""
        found: str = self.file.get("datasets", {}).get(role, "")
        for name, place in self.data:
            if text := self.file.get("locations", {}).get(name, {}).get(role):
                found = text.replace("PATH", place)
        return found

    @property
    def _conditions(self) -> Mapping[str, Any]:
        return {**self.file.get("conditions", {}), **self.rehearsal.get("conditions", {})}

    @property
    def clean(self) -> str:
        """Name of the condition of clean images."""
        return str(self._conditions.get("clean", "clean"))

    @property
    def corruptions(self) -> tuple[str, ...]:
        return _names(self._conditions.get("corruptions", ()))

    @property
    def extra(self) -> tuple[str, ...]:
        """Corruptions that the main metrics leave out, such as those that settings are selected by."""
        return tuple(one for one in _names(self._conditions.get("extra", ())) if one not in self.corruptions)

    @property
    def severities(self) -> tuple[int, ...]:
        """Severities of all corruptions; empty for the published one."""
        return tuple(self._conditions.get("severities", ()))

    @property
    def scale(self) -> str:
        return str(self._conditions.get("scale", "auto"))

    def conditions(self, *, extra: bool = True) -> tuple[str, ...]:
        """Return clean images and all corruptions, as `NAME@SEVERITY`; the extra ones last."""
        names = (*self.corruptions, *(self.extra if extra else ()))
        levels = [f"@{severity}" for severity in self.severities] or [""]
        return (self.clean, *(name + level for name in names for level in levels))

    @property
    def arms(self) -> dict[str, Arm]:
        return {arm.name: arm for name, one in self.file["arms"].items() for arm in self._expand(name, one)}

    def _expand(self, name: str, declared: Mapping[str, Any]) -> Iterator[Arm]:
        """Yield an arm, or one for each value of its variables: `for: {limit: [0.1, 0.2]}` and `$limit`."""
        lists = {
            "corruptions": self.corruptions,
            "all": (*self.corruptions, *self.extra),
            "clean": (self.clean,),
        }
        known = {key: json.dumps(list(names)) for key, names in lists.items()}
        known |= {"extra": json.dumps(list(self.extra)), "severities": json.dumps(list(self.severities))}
        variables = {**declared.get("for", {}), **self.rehearsal.get("for", {})} if "for" in declared else {}
        variables = {key: variables[key] for key in declared.get("for", ())}
        for values in product(
            *(lists.get(one, one) if isinstance(one, str) else one for one in variables.values())
        ):
            chosen = {**known, **{key: f"{value}" for key, value in zip(variables, values, strict=True)}}
            plain = json.loads(
                Template(json.dumps({**declared, "name": name})).safe_substitute(
                    {key: json.dumps(text)[1:-1] for key, text in chosen.items()}
                )
            )
            plain.pop("for", None)
            yield Arm(**{**plain, "changes": tuple(plain.get("changes", ()))})

    def matching(self, patterns: Any) -> list[str]:
        """Return the names of the arms that match patterns."""
        return [name for name in self.arms if any(fnmatchcase(name, one) for one in patterns)]


def parts_of(settings: StudySettings) -> dict[str, dict[str, Any]]:
    """Return the parts of a study, each with patterns of its arms, its splits, and its number of seeds.

    A study without declared parts has one for each question, with the arms of its rows.
    """
    parts: dict[str, dict[str, Any]] = dict(settings.file.get("parts", {}))
    for name, question in settings.file.get("questions", {}).items():
        arms = [
            arm for data, control, some in question["rows"] if data == "trained" for arm in (control, *some)
        ]
        patterns = [one.replace("CORRUPTION", "*") for one in arms]
        parts[name] = {"arms": patterns, **({"seeds": question["seeds"]} if "seeds" in question else {})}
    return parts


def _names(text: str | list[str]) -> tuple[str, ...]:
    return SUBSETS[text] if isinstance(text, str) else tuple(text)


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A network of a study: a training run, or a test of another arm's network."""

    name: str
    title: str = ""
    recipe: str = ""
    changes: tuple[str, ...] = ()
    """Changes of the recipe, as `--set` of `beaufort train` takes them."""
    start: str = ""
    """The arm whose network it starts from."""
    tests: str = ""
    """The arm whose network it tests, if it trains none itself."""
    filter: str = ""
    """The image filter that the network is tested behind."""
    folder: str = "predictions"
    """Directory of the predictions."""
    extra: bool = True
    """Whether it is tested under the extra corruptions."""
    paper: Mapping[str, float] = field(default_factory=dict)
    """Published accuracy by split."""

    def configured(self, settings: StudySettings, start: str = "") -> Recipe:
        """Return its recipe, small for a rehearsal."""
        recipe = get_recipe(self.recipe).changed([*self.changes, f"name={self.name}"])
        small = settings.rehearsal.get("recipes", {})
        keys = ("all", self.recipe if self.recipe in small else recipe.architecture) if small else ()
        return recipe.changed([*(one for key in keys for one in small.get(key, ())), f"start={start}"])


def new_study(name: str, folder: Path | str = ".") -> Path:
    """Write a small study to start from, which runs as it is; return its file."""
    path = Path(folder) / f"{name}.yaml"
    if Path(name).name != name or not name.strip("."):
        raise OptionError(f"name must be a valid file name, got {name!r:.60}")
    if path.exists():
        raise OptionError(f"{path} exists; choose another name")
    write_bytes(path, (_FILES / "template.yaml").read_bytes().replace(b"my-study", name.encode()))
    return path

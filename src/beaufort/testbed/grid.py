"""A grid: the accuracy of many models under many settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_unique

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Setting:
    """One column of a grid: a test set, or a mean over test sets."""

    name: str
    kind: str = "unknown"
    """`standard`, `natural`, `synthetic`, or `unknown`."""
    group: str = ""
    """Group within its kind: `dataset_shift`, `consistency_shift`, `corruption`, `adversarial`, …"""
    corruption: str = ""
    severity: int | None = None
    storage: str = ""
    """`on-disk`: published JPEGs; `in-memory`: made at evaluation time. The two are never pooled silently."""
    images: int | None = None
    """Number of images; None if unknown."""
    reduced: int | None = None
    """Number of images of the smaller run that some models have in this column instead."""
    clean: str | None = None
    """Setting of the standard accuracy that this shift is compared with."""
    classes: str = ""
    """Subset of classes that predictions are restricted to; all classes of the dataset if empty."""
    filter: str = ""
    """Model that images were filtered against."""
    members: tuple[str, ...] = ()
    """Settings that this one is the mean of."""

    @property
    def convention(self) -> str:
        """How predictions are scored: among a `subset` of the classes, or `all` of them."""
        return "subset" if self.classes else "all"


ALIASES: Mapping[str, tuple[str, ...]] = {
    "imagenetv2": ("imagenetv2-matched-frequency-format-val", "imagenetv2-matched-frequency"),
    "objectnet": ("objectnet-1.0-beta",),
    "vid-robust": ("imagenet-vid-robust_pm0",),
    "ytbb-robust": ("ytbb-robust_pm0",),
    "vid-robust-pm10": ("imagenet-vid-robust_pm10",),
    "ytbb-robust-pm10": ("ytbb-robust_pm10",),
    "sketch": ("imagenet-sketch",),
    "real": ("imagenet-real",),
    "imagenet-a-clean": ("val-on-imagenet-a-classes",),
    "imagenet-r-clean": ("val-on-imagenet-r-classes",),
}
"""Short names; each is the first of the settings that the grid has."""


@dataclass(frozen=True)
class Score:
    """An accuracy of a model under a setting, and how it was measured."""

    setting: str
    accuracy: float
    """In percent."""
    images: int | None = None
    """Number of images; None if unknown."""
    convention: str | None = None
    """Whether predictions are among `all` classes or those of the dataset's `subset`; None if unknown."""
    preprocessing: str | None = None
    """`own` for the model's own resize and crop; anything else differs from the reference."""
    differences: tuple[str, ...] = ()
    """Other known differences from the reference, each a clause."""
    measured: bool = False
    """Whether the accuracy is computed from predictions, so that it is known to be a percentage."""
    classes: str = ""
    """Label space, such as `objectnet`; all classes of the dataset if empty."""
    fingerprint: str = ""
    """Digests of all that can change the predictions, as in a result store."""
    date: str = ""
    source: str = ""
    """Grid, file or store that the accuracy was read from."""


@dataclass(frozen=True)
class Pair:
    """A model and the base model that it was made from."""

    model: str
    base: str
    intervention: str = ""
    provenance: str = ""
    """Source of the pair: the paper, or inferred from names."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Accuracies of models under settings, in percent, with facts about both."""

    name: str
    models: tuple[str, ...]
    values: Mapping[str, Floats]
    """A column for each setting with a value for each model, NaN where it is missing."""
    settings: Mapping[str, Setting]
    types: tuple[str, ...]
    """Type of each model: `STANDARD`, `LP_ADV`, `ROBUST_INTV`, `MORE_DATA`, …"""
    fitted: Mask
    """Models that the trend is fitted on."""
    fit_rule: str
    """Description of these models."""
    groups: Mapping[str, Mask] = field(default_factory=dict)
    """Further named sets of models."""
    pairs: tuple[Pair, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    """Source, date, license, caveat."""
    cells: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    """Scores that state how they were measured, by model and setting; those of other cells follow from
    `settings` and `facts`."""
    members: tuple[Grid, ...] = ()
    """Grids that this one unites; the first one with an accuracy provides it."""

    def __post_init__(self) -> None:
        validate_unique("models of a grid", self.models)
        for name, column in self.values.items():
            bad = np.flatnonzero((column < 0) | (column > 100))
            if len(bad):
                raise OptionError(
                    f"accuracies must be percentages from 0 to 100, got {column[bad[0]]:g} for "
                    f"{self.models[bad[0]]!r} on {name!r}"
                )

    @cached_property
    def aggregates(self) -> Mapping[str, Setting]:
        """Means over settings, by name."""
        return aggregates(self.settings)

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Row of each model."""
        return {name: row for row, name in enumerate(self.models)}

    @property
    def base(self) -> Grid:
        """The grid that the others are added to: the first of a union, or the grid itself."""
        return self.members[0].base if self.members else self

    @property
    def added(self) -> tuple[str, ...]:
        """The models that a union has beside those of its first grid."""
        return tuple(name for name in self.models if name not in self.base.row_of) if self.members else ()

    def scores(self, model: str) -> list[Score]:
        """Return all accuracies of a model, each with its provenance."""
        row = self.row_of.get(model)
        if row is None:
            known = dict.fromkeys(self.models)
            raise UnknownNameError(_unknown(f"model of the grid {self.name}", model, known))
        if self.members:
            found = {
                one.setting: one
                for member in reversed(self.members)
                for one in (member.scores(model) if model in member.row_of else ())
            }
            means = {name for member in self.members for name in member.aggregates}
            for name in (name for name in self.settings if name in means and name not in found):
                if not np.isnan(accuracy := self.values[name][row]):
                    found[name] = self._score(self.settings[name], row, float(accuracy))
            return [found[name] for name in self.settings if name in found]
        own = self.cells.get(model, {})
        return [
            own.get(name) or self._score(setting, row, float(self.values[name][row]))
            for name, setting in self.settings.items()
            if not np.isnan(self.values[name][row])
        ]

    def _score(self, setting: Setting, row: int, accuracy: float) -> Score:
        """Return a score whose provenance is that of its setting."""
        size, known = self._images[setting.name][row], setting.kind != "unknown"
        return Score(
            setting.name,
            accuracy,
            None if np.isnan(size) else int(size),
            setting.convention if known else None,
            "own" if known else None,
            classes=setting.classes,
            date=self.facts.get("date", ""),
            source=self.name,
        )

    @cached_property
    def _images(self) -> Mapping[str, Floats]:
        return {name: self.images(name) for name in self.settings}

    def setting(self, name: str) -> Setting:
        """Return a setting or a mean of settings by its name or short name."""
        for candidate in (name, *ALIASES.get(name, ())):
            if found := self.settings.get(candidate) or self.aggregates.get(candidate):
                return found
        known = {**self.settings, **self.aggregates}
        short = {alias: None for alias, full in ALIASES.items() if any(one in known for one in full)}
        raise UnknownNameError(_unknown(f"setting of the grid {self.name}", name, {**short, **known}))

    def column(self, name: str) -> Floats:
        """Return accuracies in percent under a setting or a mean of settings, NaN where missing."""
        one = self.setting(name)
        if not one.members:
            return self.values[one.name]
        return np.asarray(np.mean([self.column(member) for member in one.members], axis=0))  # keeps NaN

    def clean_of(self, name: str) -> Setting:
        """Return the setting of the standard accuracy that a shift is compared with."""
        one = self.setting(name)
        if one.clean is None or one.clean not in self.settings:
            usual = f" {one.clean}" if one.clean else ""
            raise OptionError(
                f"the grid {self.name} has no standard accuracy{usual} for {one.name}; pass one (--trend x=…)"
            )
        return self.settings[one.clean]

    def clean_and_shift(self, y: str, x: str | None = None) -> tuple[Setting, Setting]:
        """Return the settings of the standard accuracy, by default the shift's own, and of the shift."""
        return self.clean_of(y) if x is None else self.setting(x), self.setting(y)

    def default_shift(self) -> str:
        """Return ImageNetV2, or raise an error if the grid lacks it."""
        try:
            return self.setting("imagenetv2").name
        except UnknownNameError:
            shifts = [name for name, one in self.settings.items() if one.clean in self.settings]
            listed = ", ".join(shifts or self.settings)
            known = "`beaufort ls grids …` lists them" if len(self.settings) > 20 else listed
            raise OptionError(f"the grid {self.name} has no ImageNetV2; pass a shift: {known}") from None

    def images(self, name: str) -> Floats:
        """Return the number of images behind each model's accuracy, NaN where unknown.

        A column may contain runs on fewer images. They are detected by their accuracies: at least four
        values under settings of the same kind and storage, nine in ten of them whole multiples of one image
        of the smaller run. Of a run ten times as large, one in ten would be.
        """
        one = self.setting(name)
        sizes = np.full(len(self.models), np.nan if one.images is None else float(one.images))
        if one.reduced and not one.members:
            alike = [
                self.values[other.name] * (one.reduced / 100)
                for other in self.settings.values()
                if (other.reduced, other.storage) == (one.reduced, one.storage)
                and (other.group == "adversarial") == (one.group == "adversarial")
            ]
            correct = np.array(alike)
            count = (~np.isnan(correct)).sum(axis=0)
            integers = (np.abs(correct - np.round(correct)) < 1e-3).sum(axis=0)
            sizes[(count >= 4) & (integers >= 0.9 * count)] = one.reduced
        for member in reversed(self.members):
            if one.name in {**member.settings, **member.aggregates}:
                known = np.flatnonzero(~np.isnan(member.column(one.name)))
                rows = [self.row_of[member.models[row]] for row in known]
                sizes[rows] = member.images(one.name)[known]
        for model, scores in self.cells.items():
            stated = [scores[name].images for name in one.members or (one.name,) if name in scores]
            if stated:
                sizes[self.row_of[model]] = np.nan if None in stated else min(map(int, stated))  # type: ignore[arg-type]
        return sizes

    def select(self, names: Sequence[str]) -> Mask:
        """Return the models that are in all of some selections.

        A selection is a type (`LP_ADV`), a group (`v1`, `resnet50-lp`, `fit`), a model, a model without its
        input size, a pattern (`instagram-*`), or several of these joined with `|` (union).
        """
        selected = np.ones(len(self.models), bool)
        for text in names:
            parts = [text] if text in self.row_of else text.split("|")
            selected &= np.any([self._matches(part.strip()) for part in parts], axis=0)
        if not selected.any():
            raise OptionError(
                f"no model of the grid {self.name} is in all of {' and '.join(map(repr, names))}; use 'a|b' "
                "for the models in either"
            )
        return selected

    def _matches(self, text: str) -> Mask:
        if not text:
            raise OptionError("a selection must not be empty")
        named = {"fit": self.fitted, **self.groups}
        if text in named:
            return named[text]
        if text in self.types:
            return np.array([kind == text for kind in self.types])
        found = np.array([name == text or name.rpartition("@")[0] == text for name in self.models])
        if not found.any():
            found = np.array([fnmatchcase(name, text) for name in self.models])
        if not found.any():
            known = {**dict.fromkeys(self.models), **named, **dict.fromkeys(self.types)}
            raise UnknownNameError(_unknown(f"model, type or group of the grid {self.name}", text, known))
        return found


def _unknown(kind: str, text: str, known: Mapping[str, object]) -> str:
    """Return `unknown_message`, but without a list of a thousand names."""
    if len(known) <= 20 or get_close_matches(text, known, n=1, cutoff=0.6):
        return unknown_message(kind, text, known)
    return f"unknown {kind} {text!r}; `beaufort ls grids …` lists them"


def aggregates(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return means over settings: of each corruption over its severities, of all corruptions, of attacks.

    `imagenet-c.fog_on-disk` is the mean over severities 1 to 5. `avg_corruptions` is the mean of such means,
    greyscale and Stylized-ImageNet, 39 in the testbed; `avg_pgd` is the mean of the attacks. Shifts of
    different datasets are not averaged. The number of images is that of the smallest run in a member,
    because an interval from the largest would be too narrow.
    """
    means_of: dict[str, Setting] = {}
    families: dict[tuple[str, str], list[Setting]] = {}
    attacks, single = [], []
    for one in settings.values():
        if one.corruption and one.severity is not None:
            families.setdefault((one.corruption, one.storage), []).append(one)
        elif one.group == "adversarial":
            attacks.append(one)
        elif one.group in {"corruption_extra", "style_transfer"}:
            single.append(one)
    for (corruption, storage), members in families.items():
        if len(members) > 1:
            name = re.sub(r"[.@]\d(?=_|$)", "", members[0].name)
            mean = _mean(name, "corruption", members)
            means_of[name] = replace(mean, corruption=corruption, storage=storage)
    means = [*means_of.values(), *single]
    if families and len(means) > 1 and len({one.clean for one in means}) == 1:
        means_of["avg_corruptions"] = _mean("avg_corruptions", "corruption", means)
    if len(attacks) > 1:
        means_of["avg_pgd"] = _mean("avg_pgd", "adversarial", attacks)
    return means_of


def _mean(name: str, group: str, members: list[Setting]) -> Setting:
    return Setting(
        name,
        members[0].kind,
        group,
        images=min((size for one in members if (size := one.reduced or one.images)), default=None),
        clean=members[0].clean,
        members=tuple(one.name for one in members),
    )

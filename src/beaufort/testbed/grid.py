"""A grid: the accuracy of many models under many settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    """One column of a grid."""

    name: str
    kind: str = "unknown"
    """`standard`, `natural`, `synthetic`, or `unknown`."""
    group: str = ""
    """Within its kind: `dataset_shift`, `consistency_shift`, `corruption`, `adversarial`, …"""
    corruption: str = ""
    severity: int | None = None
    storage: str = ""
    """`on-disk`: published JPEGs; `in-memory`: made at evaluation time. The two are never pooled silently."""
    images: int | None = None
    """Images that an accuracy rests on; None if it is not known."""
    reduced: int | None = None
    """Images of the smaller run that some models have in this column instead."""
    clean: str | None = None
    """The setting of the standard accuracy that this shift is compared with."""
    classes: str = ""
    """Subset of classes that answers are restricted to; all of the data set's if empty."""
    filter: str = ""
    """The model that images were filtered against."""
    members: tuple[str, ...] = ()
    """Settings that this one is the mean of."""

    @property
    def convention(self) -> str:
        """How answers are scored: `subset` of the classes, or `all` of them."""
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
"""Short names; the first setting that a grid has is meant."""


@dataclass(frozen=True)
class Pair:
    """A model and the model that it was made from."""

    model: str
    base: str
    intervention: str = ""
    provenance: str = ""
    """How the base is known: from the paper, or inferred from names."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Accuracies in percent, and what the models are."""

    name: str
    models: tuple[str, ...]
    values: Mapping[str, Floats]
    """A column a setting, a model a row; NaN where there is no value."""
    settings: Mapping[str, Setting]
    types: tuple[str, ...]
    """What each model is: `STANDARD`, `LP_ADV`, `ROBUST_INTV`, `MORE_DATA`, …"""
    fitted: Mask
    """The models that the trend is fitted on."""
    fit_rule: str
    """In words, which these are."""
    groups: Mapping[str, Mask] = field(default_factory=dict)
    """Further named sets of models."""
    pairs: tuple[Pair, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    """Source, date, license, caveat."""

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
        """Means over settings, by name; see `aggregates`."""
        return aggregates(self.settings)

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The row of each model."""
        return {name: row for row, name in enumerate(self.models)}

    def setting(self, name: str) -> Setting:
        """A setting or a mean of settings, by its name or a short one."""
        for candidate in (name, *ALIASES.get(name, ())):
            found = self.settings.get(candidate) or self.aggregates.get(candidate)
            if found:
                return found
        known = {**self.settings, **self.aggregates}
        short = {alias: None for alias, full in ALIASES.items() if any(one in known for one in full)}
        raise UnknownNameError(_near(f"setting of the grid {self.name}", name, {**short, **known}))

    def column(self, name: str) -> Floats:
        """Accuracies in percent under a setting or a mean of settings, NaN where there is none."""
        one = self.setting(name)
        if not one.members:
            return self.values[one.name]
        return np.asarray(np.mean([self.column(member) for member in one.members], axis=0))  # NaN stays

    def clean_of(self, name: str) -> Setting:
        """The setting of the standard accuracy that a shift is compared with."""
        one = self.setting(name)
        if one.clean is None or one.clean not in self.settings:
            usual = f" {one.clean}" if one.clean else ""
            raise OptionError(
                f"the grid {self.name} has no standard accuracy{usual} for {one.name}; name one with x (--x)"
            )
        return self.settings[one.clean]

    def clean_and_shift(self, y: str, x: str | None = None) -> tuple[Setting, Setting]:
        """The setting of the standard accuracy, the shift's own if `x` is None, and that of the shift."""
        return self.clean_of(y) if x is None else self.setting(x), self.setting(y)

    def default_shift(self) -> str:
        """ImageNetV2, the shift that is meant where none is named; an error if the grid lacks it."""
        try:
            return self.setting("imagenetv2").name
        except UnknownNameError:
            shifts = [name for name, one in self.settings.items() if one.clean in self.settings]
            listed = ", ".join(shifts or self.settings)
            known = "`beaufort testbed ls --grid …` lists them" if len(self.settings) > 20 else listed
            raise OptionError(
                f"the grid {self.name} has no ImageNetV2; name a shift with y (--y): {known}"
            ) from None

    def images(self, name: str) -> Floats:
        """How many images each model's accuracy rests on; NaN where it is not known.

        A column may hold runs on fewer images. Such a model is told by its accuracies: of its values under
        the settings of that kind and storage, four or more, nine in ten are whole multiples of one image of
        the smaller run; of a run ten times as large one in ten would be.
        """
        one = self.setting(name)
        sizes = np.full(len(self.models), np.nan if one.images is None else float(one.images))
        if one.reduced and not one.members:
            sizes[self._reduced(one)] = one.reduced
        return sizes

    def _reduced(self, one: Setting) -> Mask:
        alike = [
            other.name
            for other in self.settings.values()
            if other.reduced == one.reduced
            and other.storage == one.storage
            and (other.group == "adversarial") == (one.group == "adversarial")
        ]
        assert one.reduced is not None
        hits = np.array([self.values[name] for name in alike]) * (one.reduced / 100)
        count = (~np.isnan(hits)).sum(axis=0)
        whole = (np.abs(hits - np.round(hits)) < 1e-3).sum(axis=0)
        return np.asarray((count >= 4) & (whole >= 0.9 * count))

    def select(self, names: Sequence[str]) -> Mask:
        """The models that every one of some selections names.

        A selection is a type (`LP_ADV`), a group (`v1`, `resnet50-lp`, `fit`), a model, a model without its
        input size, or a pattern (`instagram-*`); several selections separated by `|` are joined.
        """
        chosen = np.ones(len(self.models), bool)
        for text in names:
            parts = [text] if text in self.place_of else text.split("|")
            chosen &= np.any([self._one(part.strip()) for part in parts], axis=0)
        if not chosen.any():
            raise OptionError(
                f"no model of the grid {self.name} is in all of {' and '.join(map(repr, names))}; 'a|b' "
                "takes the models of either"
            )
        return chosen

    def _one(self, text: str) -> Mask:
        named = {"fit": self.fitted, **self.groups}
        if not text:
            raise OptionError("a selection must not be empty")
        if text in named:
            return named[text]
        if text in self.types:
            return np.array([kind == text for kind in self.types])
        found = np.array([name == text or name.rpartition("@")[0] == text for name in self.models])
        if not found.any():
            found = np.array([fnmatchcase(name, text) for name in self.models])
        if not found.any():
            known = {**dict.fromkeys(self.models), **named, **dict.fromkeys(self.types)}
            raise UnknownNameError(_near(f"model, type or group of the grid {self.name}", text, known))
        return found


def _near(kind: str, text: str, known: Mapping[str, object]) -> str:
    """As `unknown`, without a list of a thousand names."""
    if len(known) <= 20 or get_close_matches(text, known, n=1, cutoff=0.6):
        return unknown_message(kind, text, known)
    return f"unknown {kind} {text!r}; `beaufort testbed ls --grid …` lists them"


def aggregates(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Means over settings: each corruption over its five severities, all corruptions, all attacks.

    `imagenet-c.fog_on-disk` is the mean over severities 1 to 5. `avg_corruptions` is the mean of such means,
    of greyscale and of Stylized-ImageNet, 39 in the testbed; `avg_pgd` is the mean of the attacks. A model
    that lacks a member has no mean, and shifts of several data sets are not averaged. The images are those
    of the smallest run that a member can hold, because an interval from the largest would be too narrow.
    """
    made: dict[str, Setting] = {}
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
            made[name] = _mean(name, "corruption", members, corruption=corruption, storage=storage)
    means = [*made.values(), *single]
    if families and len(means) > 1 and len({one.clean for one in means}) == 1:
        made["avg_corruptions"] = _mean("avg_corruptions", "corruption", means)
    if len(attacks) > 1:
        made["avg_pgd"] = _mean("avg_pgd", "adversarial", attacks)
    return made


def _mean(
    name: str, group: str, members: list[Setting], *, corruption: str = "", storage: str = ""
) -> Setting:
    sizes = [one.reduced or one.images for one in members]
    return Setting(
        name,
        members[0].kind,
        group,
        corruption,
        storage=storage,
        images=min((size for size in sizes if size is not None), default=None),
        clean=members[0].clean,
        members=tuple(one.name for one in members),
    )

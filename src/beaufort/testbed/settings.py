"""Settings: what a column of a grid is, how many images it has, what it is compared with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from beaufort.testbed._tables import read_table


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


@cache
def known_settings(grid: str) -> Mapping[str, Setting]:
    """The settings of `testbed`, `timm` or a leaderboard `robustbench-…`, by name."""
    return {row["setting"]: _setting(row) for row in read_table("settings").rows() if row["grid"] == grid}


def _setting(row: Mapping[str, str]) -> Setting:
    def number(text: str) -> int | None:
        return int(text) if text else None

    return Setting(
        row["setting"],
        row["kind"],
        row["group"],
        row["corruption"],
        number(row["severity"]),
        row["storage"],
        number(row["n_images"]),
        number(row["n_images_reduced"]),
        row["s1_setting"] or None,
        row["class_subset"],
        row["filter"],
    )


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

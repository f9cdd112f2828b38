"""Questions about architectures: on all of ImageNet-C by the testbed, and by networks trained on CIFAR-10.

The testbed has accuracies on all 50,000 × 75 published images, the paper's own, so it decides; CIFAR-10 tells
whether a finding carries over to small images.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from beaufort.reproduce.enhancements.arms import BASE
from beaufort.reproduce.enhancements.findings import (
    SMALL_PICTURES,
    StudyArms,
    StudyFinding,
    cifar_rows,
    signed,
    verdict_of,
)
from beaufort.reproduce.enhancements.statistics import Shares, level_of
from beaufort.stats import Estimate
from beaufort.testbed.architectures import FAMILIES, ArchitectureStudy, study_architectures

__all__ = ["about_aggregation", "about_small", "architectures"]

_LEAST_SPREAD = 0.05
"""Points of clean error that networks must differ by to give a line."""
_RESNETS = ("resnet20", "resnet56", "resnet110")
_AGGREGATING = ("densenet121", "densenet161", "resnext50_32x4d", "resnext101_64x4d")
"""Those that the paper prints."""
_BY_SIZE = (
    ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
    ("densenet121", "densenet161"),
    ("resnext50_32x4d", "resnext101_64x4d"),
)


@lru_cache(maxsize=1)
def architectures() -> ArchitectureStudy:
    """The networks of the testbed and their distance from the line of accuracy."""
    return study_architectures()


def about_small(arms: StudyArms) -> StudyFinding:
    """Confirmed if all small networks are surely above the line, refuted if all are below."""
    names = [n for n in arms.cifar if n.startswith(("resnet20-", "resnet56-pruned"))]
    return _about_line(
        arms,
        "small",
        "Small and pruned networks lie above the line of accuracy",
        "CondenseNet +1.1 and +1.6 above the line of ResNets",
        FAMILIES["small"],
        [n for n in names if not n.endswith("double")],
        above=True,
    )


def about_aggregation(arms: StudyArms) -> StudyFinding:
    """Confirmed if the paper's networks are all surely below the line, refuted if all are above."""
    mce = {one.name: one.mce for one in architectures().networks}
    falls = all(mce[one] > mce[two] for names in _BY_SIZE for one, two in pairwise(names))
    return _about_line(
        arms,
        "aggregation",
        "Aggregating networks lie below the line of accuracy",
        "DenseNet-121 −5.5, DenseNet-161 −9.0, ResNeXt-50 −7.2, ResNeXt-101 −10.8 off a line of two ResNets",
        _AGGREGATING,
        ["densenet40", "densenet40-24", "resnext29"],
        above=False,
        more=f"; mCE {'falls' if falls else 'does not always fall'} with size within families",
    )


def _about_line(
    arms: StudyArms,
    design: str,
    statement: str,
    printed: str,
    large: Sequence[str],
    names: Sequence[str],
    *,
    above: bool,
    more: str = "",
) -> StudyFinding:
    rows, study = cifar_rows(arms, BASE, [*_RESNETS[1:], *names]), architectures()
    residuals = {
        one.name: Estimate(one.residual, one.residual_interval.low, one.residual_interval.high, study.fitted)
        for one in study.networks
        if one.name in large
    }
    each = {verdict_of(one, above=above) for one in residuals.values()}
    verdict = each.pop() if len(each) == 1 else "undecided"
    told = (
        f"on all of ImageNet-C, off the line of {study.fitted} standard networks of the testbed: "
        f"{_listed(residuals)}{more}"
    )
    small = {name: off for name in names if (off := _off_the_line(arms, _RESNETS, name)) is not None}
    if small:
        told += f"; on CIFAR-10, off the line of ResNets: {_listed(small)}"
    elif rows:
        told += "; on CIFAR-10 the ResNets do not differ in clean error, so there is no line"
    caveat = f"intervals of the testbed are over networks of the line{f'; {SMALL_PICTURES}' if rows else ''}"
    return StudyFinding(design, statement, verdict, told, printed, caveat, rows)


def _listed(found: dict[str, Estimate]) -> str:
    return ", ".join(f"{name} {signed(off)}" for name, off in found.items())


def _off_the_line(arms: StudyArms, line: Sequence[str], name: str, metric: str = "mCE") -> Estimate | None:
    """How far a network's mCE is above the line through others against clean error, over images and seeds.

    None if there is no line: of one network, or of networks with one clean error. The slope is that of all
    images; it does not vary in the interval.
    """
    known = [arms.cifar[one] for one in line if one in arms.cifar]
    errors = [float(one.rows["clean error"].mean()) for one in known]
    if name not in arms.cifar or len(known) < 2 or max(errors) - min(errors) < _LEAST_SPREAD:
        return None
    seeds = min(len(one.rows["mCE"]) for one in (*known, arms.cifar[name]))
    slope = float(np.polyfit(errors, [one.rows[metric].mean() for one in known], 1)[0])
    one = arms.cifar[name]
    own = one.rows[metric][:seeds] - slope * one.rows["clean error"][:seeds]
    others = np.mean(
        [other.rows[metric][:seeds] - slope * other.rows["clean error"][:seeds] for other in known], axis=0
    )
    shares = Shares({"residual": own - others}, one.corruptions)
    return level_of(shares, "residual")

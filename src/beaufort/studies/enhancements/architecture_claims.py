"""Questions about architectures: on all of ImageNet-C by the testbed, and by networks trained on CIFAR-10.

The testbed has accuracies on all 50,000 × 75 published images, the paper's own, so it decides; CIFAR-10 tells
whether a finding carries over to small images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from beaufort.metrics.stats import Estimate
from beaufort.studies.enhancements.arm_predictions import CIFAR, StudyArms
from beaufort.studies.enhancements.findings import (
    OFF_THE_LINE,
    SMALL_PICTURES,
    ArmRow,
    StudyFinding,
    cifar_rows,
    signed,
    trainings_text,
    verdict_of,
)
from beaufort.studies.enhancements.mce_statistics import combined, intervals
from beaufort.studies.enhancements.training_arms import BASE, training_arms
from beaufort.testbed.architectures import FAMILIES, ArchitectureStudy, study_architectures

_LEAST_SPREAD = 0.05
"""Points of clean error that networks must differ by to give a line."""
_RESNETS = ("resnet20", "resnet56", "resnet110")
_WIDE = "resnet20-double"
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
    return _about_line(
        arms,
        "small",
        "Small and pruned networks lie above the line of accuracy",
        "CondenseNet +1.1 and +1.6 above the line of ResNets",
        FAMILIES["small"],
        [arm.name for arm in training_arms(arms.settings)["small"] if arm.name != _WIDE],
        above=True,
        beside=(_WIDE,),
    )


def about_aggregation(arms: StudyArms) -> StudyFinding:
    """Confirmed if the paper's networks are all surely below the line, refuted if all are above."""
    mce = {one.name: one.mce for one in architectures().networks}
    falls = all(mce[one] > mce[two] for names in _BY_SIZE for one, two in pairwise(names))
    ends = ", ".join(f"{names[0]} to {names[-1]}" for names in _BY_SIZE)
    return _about_line(
        arms,
        "aggregation",
        "Aggregating networks lie below the line of accuracy",
        "DenseNet-121 −5.5, DenseNet-161 −9.0, ResNeXt-50 −7.2, ResNeXt-101 −10.8 off a line of two ResNets",
        _AGGREGATING,
        ["densenet40", "densenet40-24", "resnext29"],
        above=False,
        more=f"; mCE {'falls' if falls else 'does not always fall'} with size from {ends}",
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
    beside: Sequence[str] = (),
    more: str = "",
) -> StudyFinding:
    rows, study = cifar_rows(arms, BASE, [*_RESNETS[1:], *beside, *names]), architectures()
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
    there = [name for name in names if name in arms.cifar]
    small = {name: off for name in there if (off := _off_the_line(arms, name)) is not None}
    if small:
        line = [name for name in _RESNETS if name in arms.cifar]
        used = trainings_text(*(_line_seeds(arms, name) for name in small))
        told += f"; on {CIFAR}, off the line of {', '.join(line)} ({used}): {_listed(small)}"
    elif rows and there:
        told += f"; on {CIFAR} there is no line, which takes two ResNets of different clean errors"
    rows = [_with_line(arms, row, small[row.arm]) if row.arm in small else row for row in rows]
    caveat = f"intervals of the testbed are over networks of the line{f'; {SMALL_PICTURES}' if rows else ''}"
    return StudyFinding(design, statement, verdict, told, printed, caveat, rows)


def _with_line(arms: StudyArms, row: ArmRow, off: Estimate) -> ArmRow:
    numbers = {**row.numbers, OFF_THE_LINE: off}
    return replace(row, numbers=numbers, line_seeds=_line_seeds(arms, row.arm))


def _listed(found: dict[str, Estimate]) -> str:
    return ", ".join(f"{name} {signed(off)}" for name, off in found.items())


def _line_seeds(arms: StudyArms, name: str) -> int:
    """The seeds that a network and all ResNets of the line have."""
    return min(arms.cifar[one].seeds for one in (*_RESNETS, name) if one in arms.cifar)


def _off_the_line(arms: StudyArms, name: str) -> Estimate | None:
    """How far a network's mCE is above the line of ResNets against clean error, over images and seeds.

    None if there is no line: of one network, or of networks with one clean error. In the interval all clean
    errors and mCEs vary, and so the line, by its derivatives: far from the ResNets its slope matters most.
    """
    line, one = [arms.cifar[known] for known in _RESNETS if known in arms.cifar], arms.cifar[name]
    seeds = _line_seeds(arms, name)
    x, y = (np.array([known.mean(metric, seeds) for known in line]) for metric in ("clean error", "mCE"))
    if len(line) < 2 or x.max() - x.min() < _LEAST_SPREAD:
        return None
    right, up = x - x.mean(), y - y.mean()
    slope, far = right @ up / (right @ right), one.mean("clean error", seeds) - x.mean()
    by_x = slope / len(line) - far * (up - 2 * slope * right) / (right @ right)
    by_y = -1 / len(line) - far * right / (right @ right)
    return intervals(
        {
            "residual": combined(
                (1, one.rows["mCE"]),
                (-slope, one.rows["clean error"]),
                *((factor, known.rows["clean error"]) for factor, known in zip(by_x, line, strict=True)),
                *((factor, known.rows["mCE"]) for factor, known in zip(by_y, line, strict=True)),
            )
        }
    )["residual"]

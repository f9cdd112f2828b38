"""Questions that the testbed decides, with accuracies on all images of ImageNet-C and Stylized-ImageNet.

Architectures are compared with the testbed's line of mCE against clean error; networks trained on CIFAR-10
show whether a finding carries over to small images. The paper's stylized images were never published:
Stylized-ImageNet (Geirhos et al. 2019) is the same method at full strength with other paintings, and photos
are stylized by a network of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from beaufort.corruptions import get_corruption_names
from beaufort.metrics.stats import Estimate, resample
from beaufort.studies.engine import definition
from beaufort.studies.enhancements import findings as rules
from beaufort.studies.enhancements.arm_metrics import (
    CIFAR,
    ArmMetrics,
    Contributions,
    StudyArms,
    combined,
    intervals,
)
from beaufort.studies.enhancements.enhancement_arms import NETWORKS, STUDY_NAME, STYLE_LEVELS
from beaufort.studies.enhancements.findings import (
    OFF_THE_LINE,
    ArmRow,
    Decision,
    Rule,
    StudyFinding,
    question_rows,
    runs_text,
    signed,
)
from beaufort.studies.paper_tables import decide
from beaufort.studies.predictions import StudyPredictions
from beaufort.testbed.architectures import FAMILIES, ArchitectureStudy, study_architectures
from beaufort.testbed.load import load_grid

Floats = NDArray[np.float64]

_LEAST_SPREAD = 0.05
"""Points of clean error that networks must differ by to define a line."""
_RESNETS = ("resnet20", "resnet56", "resnet110")
_BESIDE = "resnet20-double"
"""An arm of `small` that is not small."""
_IMAGES = 50_000
"""Number of images behind every accuracy of the testbed."""
_STYLE = "stylize"
_Z = 1.96


@lru_cache(maxsize=1)
def architectures() -> ArchitectureStudy:
    """Return the networks of the testbed and their distances from the line of accuracy."""
    return study_architectures()


def small(arms: StudyArms, rows: list[ArmRow]) -> Decision:
    """Confirmed if all small networks are above the line; refuted if all are below."""
    return _by_line(arms, rows, FAMILIES["small"], above=True)


def aggregation(arms: StudyArms, rows: list[ArmRow]) -> Decision:
    """Confirmed if the paper's networks are all below the line; refuted if all are above."""
    declared = definition(STUDY_NAME)["testbed"]
    mce = {one.name: one.mce for one in architectures().networks}
    falls = all(mce[one] > mce[two] for names in declared["by_size"] for one, two in pairwise(names))
    ends = ", ".join(f"{names[0]} to {names[-1]}" for names in declared["by_size"])
    more = f"; mCE {'falls' if falls else 'does not always fall'} with size from {ends}"
    return _by_line(arms, rows, declared["aggregating"], above=False, more=more)


def _by_line(
    arms: StudyArms, rows: Sequence[ArmRow], names: Sequence[str], *, above: bool, more: str = ""
) -> Decision:
    """Decide by the distances of the testbed's networks from its line; CIFAR-10 only adds to the text."""
    study = architectures()
    distances = {
        one.name: Estimate(one.residual, one.residual_interval.low, one.residual_interval.high, study.fitted)
        for one in study.networks
        if one.name in names
    }
    over = all(one.low > 0 for one in distances.values())
    under = all(one.high < 0 for one in distances.values())
    verdict = decide(confirmed=over if above else under, refuted=under if above else over)
    text = (
        f"on all of ImageNet-C, off the line of {study.fitted} standard networks of the testbed: "
        f"{_list(distances)}{more}"
    )
    tested = [row for row in rows if _is_tested(row)]
    if off := {row.arm: row.numbers[OFF_THE_LINE] for row in tested if OFF_THE_LINE in row.numbers}:
        line = ", ".join(name for name in _RESNETS if name in arms.cifar)
        seeds = runs_text(*(row.line_seeds for row in tested if row.arm in off))
        text += f"; on {CIFAR}, off the line of {line} ({seeds}): {_list(off)}"
    elif tested:
        text += f"; on {CIFAR} there is no line, which requires two ResNets with different clean errors"
    return verdict, text


def _list(distances: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{name} {signed(off)}" for name, off in distances.items())


def _is_tested(row: ArmRow) -> bool:
    return bool(row.differences) and row.arm not in (*_RESNETS, _BESIDE)


def _with_line(arms: StudyArms, row: ArmRow) -> ArmRow:
    """Return a row with the distance of its network from the line of ResNets, if there is a line."""
    if not _is_tested(row):
        return row
    seeds = min(arms.cifar[one].seeds for one in (*_RESNETS, row.arm) if one in arms.cifar)
    off = _off_the_line(arms, row.arm, seeds)
    return row if off is None else replace(row, numbers={**row.numbers, OFF_THE_LINE: off}, line_seeds=seeds)


def _off_the_line(arms: StudyArms, name: str, seeds: int) -> Estimate | None:
    """Return how far a network's mCE is above the line of ResNets against clean error, over images and seeds.

    None if there is no line: with one network, or with networks of one clean error. The interval accounts for
    the variation of all clean errors and mCEs, and so of the line, by its derivatives: far from the ResNets
    the slope matters most.
    """
    line, one = [arms.cifar[known] for known in _RESNETS if known in arms.cifar], arms.cifar[name]
    x, y = (np.array([known.mean(metric, seeds) for known in line]) for metric in ("clean error", "mCE"))
    if len(line) < 2 or x.max() - x.min() < _LEAST_SPREAD:
        return None
    right, up = x - x.mean(), y - y.mean()
    slope, far = right @ up / (right @ right), one.mean("clean error", seeds) - x.mean()
    by_x = slope / len(line) - far * (up - 2 * slope * right) / (right @ right)
    by_y = -1 / len(line) - far * right / (right @ right)
    residual = combined(
        (1, one.rows["mCE"]),
        (-slope, one.rows["clean error"]),
        *((factor, known.rows["clean error"]) for factor, known in zip(by_x, line, strict=True)),
        *((factor, known.rows["mCE"]) for factor, known in zip(by_y, line, strict=True)),
    )
    return intervals({"residual": residual})["residual"]


@dataclass(frozen=True)
class StyleRow:
    """CEs of one standard network of the testbed, in percent."""

    network: str
    style: float
    """Of Stylized-ImageNet."""
    worst: str
    """The corruption with the largest CE."""
    worst_ce: float
    mce: float
    gap: Estimate
    """Style's CE minus the largest CE of a corruption."""


@lru_cache(maxsize=1)
def styles_in_testbed() -> tuple[StyleRow, ...]:
    """Return every standard network but AlexNet, whose errors are the divisor.

    Predictions for single images are not published, so the interval of a gap assumes the worst about how
    errors coincide: deviations add up, not variances.
    """
    grid = load_grid("paper")
    columns = {
        name: np.stack(
            [1 - grid.column(one) / 100 for one in grid.setting(f"imagenet-c.{name}_on-disk").members], axis=1
        )
        for name in get_corruption_names("common")
    }
    styled = 1 - grid.column("stylized_imagenet") / 100
    complete = np.isfinite(styled) & np.all(
        [np.isfinite(one).all(axis=1) for one in columns.values()], axis=0
    )
    base = grid.row_of["alexnet"]
    rows = []
    for row in np.flatnonzero(grid.fitted & complete):
        if row == base:
            continue
        errors = {name: values[row] for name, values in columns.items()}
        ces = {name: errors[name].sum() / columns[name][base].sum() for name in errors}
        worst = max(ces, key=lambda name: float(ces[name]))
        style = styled[row] / styled[base]
        spread = _deviation(styled[row]) / styled[base]
        spread += sum(map(_deviation, errors[worst])) / columns[worst][base].sum()
        gap, width = 100 * float(style - ces[worst]), _Z * 100 * float(spread)
        mce = 100 * float(np.mean(list(ces.values())))
        interval = Estimate(gap, gap - width, gap + width, _IMAGES)
        rows.append(
            StyleRow(grid.models[row], 100 * float(style), worst, 100 * float(ces[worst]), mce, interval)
        )
    return tuple(rows)


def _deviation(error: float) -> float:
    return float(np.sqrt(error * (1 - error) / _IMAGES))


def style(arms: StudyArms, rows: list[ArmRow]) -> Decision:
    """Confirmed if style has the largest CE for ResNet-50, in testbed and photos; refuted if in neither."""
    known = styles_in_testbed()
    one = next(row for row in known if row.network == "resnet50")
    rank = sum(row.gap.value > 0 for row in known)
    above = sum(row.style > row.mce for row in known)
    text = (
        f"Stylized-ImageNet has CE {one.style:.1f}, {signed(one.gap)} to {one.worst}, and is hardest for "
        f"{rank} of {len(known)} networks of the testbed; it is above mCE for {above}"
    )
    gaps = [one.gap]
    if (found := photo_gap(arms)) is not None:
        if found.network == NETWORKS[0]:  # the claim is about no other network
            gaps.append(found.gap)
        text += (
            f"; on our stylized photos, {found.network} has CE {signed(found.gap)} to {found.worst} "
            f"(divided by {found.reference}); undivided, its mean error is {np.mean(found.errors):.1f} % "
            f"({', '.join(f'{error:.1f}' for error in found.errors)} by severity) and the largest of a "
            f"corruption {found.hardest_error:.1f} % ({found.hardest}); an error of {found.painted:.1f} % at "
            f"severity 0 against {found.clean:.1f} % on the photos themselves"
        )
    verdict = decide(confirmed=all(gap.low > 0 for gap in gaps), refuted=all(gap.high < 0 for gap in gaps))
    return verdict, text


def photo_ces(arms: StudyArms) -> dict[str, dict[str, Contributions]]:
    """Return what each photo adds to the CE, by network and by `stylize` or corruption.

    CEs are divided by the errors of one of the networks, which has to make some everywhere.
    """
    networks = _stylized_networks(arms)
    if len(networks) < 2:
        return {}
    wrong = {name: _wrong(arms.photos[name]["plain"], arms.styles[name]) for name in networks}
    base = {name: float(values.mean()) for name, values in wrong[_reference(networks)].items()}
    if not all(base.values()):
        return {}
    most = len(arms.settings.severities), len(STYLE_LEVELS) - 1
    return {
        network: {
            name: Contributions(100 * values[None] / base[name], (0, 100 * most[name == _STYLE] / base[name]))
            for name, values in wrong[network].items()
        }
        for network in networks
        if network != _reference(networks)
    }


def _stylized_networks(arms: StudyArms) -> list[str]:
    return [name for name, by_arm in arms.photos.items() if name in arms.styles and "plain" in by_arm]


def _reference(networks: Sequence[str]) -> str:
    """Return the network whose errors are the divisor: the last one."""
    return ([name for name in NETWORKS if name in networks] or networks)[-1]


def _wrong(plain: ArmMetrics, styles: StudyPredictions) -> Mapping[str, Floats]:
    """Return under how many severities of each corruption, and of style, each photo is misclassified."""
    assert plain.right is not None
    wrong = {}
    for name in plain.corruptions:
        places = [i for i, one in enumerate(plain.conditions) if one.partition("@")[0] == name]
        wrong[name] = (~plain.right[places]).sum(axis=0).astype(np.float64)
    places = [i for i, one in enumerate(styles.conditions) if one != f"{_STYLE}@0"]
    wrong[_STYLE] = (~styles.correct[places]).sum(axis=0).astype(np.float64)
    return wrong


def photo_errors(arms: StudyArms) -> dict[str, dict[str, float]]:
    """Return the mean error over severities in percent, by network and by `stylize` or corruption."""
    levels = len(arms.settings.severities), len(STYLE_LEVELS) - 1
    return {
        network: {
            name: 100 * float(values.mean()) / levels[name == _STYLE]
            for name, values in _wrong(arms.photos[network]["plain"], arms.styles[network]).items()
        }
        for network in _stylized_networks(arms)
    }


@dataclass(frozen=True)
class PhotoGap:
    """Style beside the hardest corruption for one network, on photos; percentages."""

    network: str
    gap: Estimate
    """Style's CE minus the largest other CE."""
    worst: str
    """The corruption with the largest CE."""
    reference: str
    """The network whose errors are the divisor."""
    painted: float
    """Error at severity 0 of style."""
    clean: float
    errors: tuple[float, ...]
    """At the severities of style above 0."""
    hardest: str
    """The corruption with the largest error, whatever that of the reference."""
    hardest_error: float


def photo_gap(arms: StudyArms) -> PhotoGap | None:
    """Return the gap of the paper's network, or of the first with predictions."""
    ces = photo_ces(arms)
    if not ces:
        return None
    network = next((name for name in NETWORKS if name in ces), next(iter(ces)))
    others = dict(ces[network])
    style = others.pop(_STYLE)
    drawn = resample(np.concatenate([style.values, *(one.values for one in others.values())]).T, seed=0)
    means = {name: float(one.values.mean()) for name, one in others.items()}
    worst = max(means, key=lambda name: means[name])
    ends = []
    for least, tail in ((0, 0.025), (1, 0.975)):  # of an unseen image, as in `intervals`
        some = drawn.beside([style.ends[least], *(one.ends[1 - least] for one in others.values())])
        ends.append(float(np.quantile(some[:, 0] - some[:, 1:].max(axis=1), tail)))
    gap = float(style.values.mean()) - means[worst]
    painted, *by_level = (
        100 * float(1 - arms.styles[network].row(f"{_STYLE}@{level}").mean()) for level in STYLE_LEVELS
    )
    errors = photo_errors(arms)[network]
    hardest = max(others, key=lambda name: errors[name])
    return PhotoGap(
        network,
        Estimate(gap, min(gap, ends[0]), max(gap, ends[1]), style.values.shape[1]),
        worst,
        _reference([name for name in arms.photos if name in arms.styles]),
        painted,
        arms.photos[network]["plain"].mean("clean error"),
        tuple(by_level),
        hardest,
        errors[hardest],
    )


RULES: Mapping[str, Rule] = {
    "nlm": rules.nlm,
    "clahe": rules.clahe,
    "stability": rules.stability,
    "ten-crop": rules.ten_crops,
    "small": small,
    "aggregation": aggregation,
    "multiscale": rules.multiscale,
    "transfer": rules.transfer,
    "shake": rules.shake,
    "style": style,
    "augmentation": rules.augmentation,
}


def find(arms: StudyArms, question: str) -> StudyFinding:
    """Return the result of a question."""
    rows = question_rows(arms, question)
    if definition(STUDY_NAME)["questions"][question].get("second") == OFF_THE_LINE:
        rows = [_with_line(arms, row) for row in rows]
    verdict, text = RULES[question](arms, rows) or ("not run", "no predictions decide it yet")
    return StudyFinding(question, verdict, text, rows)

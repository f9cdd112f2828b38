"""mCE as a mean over images, and differences of two arms on the same images and seeds.

With a fixed baseline, mCE and relative mCE are sums over images: each image has a share of them, and a
difference of two arms is the mean of differences of shares. Intervals are over images and, where arms were
trained, over seeds, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.corruptions import SUBSETS
from beaufort.metrics import get_baseline
from beaufort.reproduce.answers import StudyAnswers
from beaufort.reproduce.enhancements.settings import CLEAN, EnhancementSettings
from beaufort.stats import Estimate
from beaufort.stats.resampling import bootstrap_means

__all__ = [
    "GROUPS",
    "Normalizer",
    "Shares",
    "alexnet",
    "difference",
    "level_of",
    "normalizer_of",
    "shares_of",
]

Floats = NDArray[np.float64]
Rights = NDArray[np.bool_]

_RESAMPLES = 10_000
_ALL = (1, 2, 3, 4, 5)
GROUPS = ("noise", "blur", "weather", "digital")
"""The four kinds of corruptions."""
_FEW_SEEDS = 3


@dataclass(frozen=True)
class Normalizer:
    """Errors that others are divided by: clean, and by corruption the sum over severities."""

    clean: float
    sums: Mapping[str, float]
    severities: int


@dataclass(frozen=True)
class Shares:
    """What each image adds to each number, in percent, `(seeds, images)` by metric; means are the numbers."""

    rows: Mapping[str, Floats]
    corruptions: tuple[str, ...]
    """Those that mCE is over; each has a row `ce: NAME`."""
    conditions: tuple[str, ...] = ()
    right: Rights | None = None
    """Which images the first seed recognizes under each condition, `(conditions, images)`."""


def alexnet(settings: EnhancementSettings) -> Normalizer:
    """The published errors of AlexNet; of the extra corruptions only averages over severities are known."""
    known = get_baseline("alexnet")
    errors = known.select((*settings.corruptions, *settings.extra), _ALL)
    sums = {}
    for name, values in errors.items():
        each = np.broadcast_to(np.asarray(values, np.float64), len(_ALL))
        sums[name] = float(sum(each[severity - 1] for severity in settings.severities))
    assert known.clean is not None
    return Normalizer(float(known.clean), sums, len(settings.severities))


def normalizer_of(answers: StudyAnswers) -> Normalizer:
    """The errors of a network of our own."""
    rows = _rows(answers.conditions)
    errors = 1 - answers.right.mean(axis=1)
    sums = {name: float(errors[places].sum()) for name, places in rows.items() if name != CLEAN}
    return Normalizer(float(errors[rows[CLEAN][0]]), sums, len(next(iter(rows[n] for n in sums))))


def shares_of(answers: Sequence[StudyAnswers], base: Normalizer, settings: EnhancementSettings) -> Shares:
    """The shares of one arm, a row a seed."""
    rows = _rows(answers[0].conditions)
    wrong = np.stack([~one.right for one in answers]).astype(np.float64)
    clean = wrong[:, rows[CLEAN][0]]
    sums = {name: wrong[:, places].sum(axis=1) for name, places in rows.items() if name != CLEAN}
    ces = {name: sums[name] / base.sums[name] for name in sums}
    count = base.severities
    relative = {
        name: (sums[name] - count * clean) / (base.sums[name] - count * base.clean)
        for name in settings.corruptions
        if base.sums[name] > count * base.clean
    }
    found = {
        "clean error": clean,
        "mCE": np.mean([ces[name] for name in settings.corruptions], axis=0),
        **({"relative mCE": np.mean(list(relative.values()), axis=0)} if relative else {}),
        **{f"{name} CE": mean for name, mean in _group_means(ces, settings).items()},
        **{f"ce: {name}": ces[name] for name in settings.corruptions},
    }
    shares = {name: 100 * values for name, values in found.items()}
    return Shares(shares, settings.corruptions, answers[0].conditions, answers[0].right)


def _group_means(ces: Mapping[str, Floats], settings: EnhancementSettings) -> dict[str, Floats]:
    """Means over kinds of corruptions, over all but noise, and over the extra ones, for choices."""
    groups = {name: [one for one in settings.corruptions if one in SUBSETS[name]] for name in GROUPS}
    groups["other"] = [one for one in settings.corruptions if one not in SUBSETS["noise"]]
    groups["extra"] = [one for one in settings.extra if one in ces]
    return {name: np.mean([ces[one] for one in some], axis=0) for name, some in groups.items() if some}


def level_of(arm: Shares, metric: str) -> Estimate:
    """A number of one arm with its interval."""
    return _interval(arm.rows[metric])


def difference(control: Shares, arm: Shares, metric: str = "mCE") -> Estimate:
    """An arm's number less its control's, on the same images and the same seeds."""
    first, second = control.rows[metric], arm.rows[metric]
    seeds = min(len(first), len(second))
    return _interval(second[:seeds] - first[:seeds])


def _interval(values: Floats) -> Estimate:
    """The mean of `(seeds, images)` with a 95 % interval over images, and over seeds if they are several.

    Both are weighted anew in each resample, by spacings of uniform numbers.
    """
    seeds, images = values.shape
    means = bootstrap_means(values.T, resamples=_RESAMPLES, seed=0)
    if seeds >= _FEW_SEEDS:
        weights = np.random.default_rng(0).dirichlet(np.ones(seeds), len(means))
        drawn = (means * weights).sum(axis=1)
    else:
        drawn = means.mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(float(values.mean()), float(low), float(high), images)


def _rows(conditions: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, condition in enumerate(conditions):
        found.setdefault(condition.partition("@")[0], []).append(place)
    return found

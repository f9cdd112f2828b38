"""mCE as a mean over images, and differences of two arms on the same images and seeds.

With a fixed baseline, mCE and relative mCE are sums over images: each image has a share of them, and a
difference of two arms is the mean of differences of shares. Intervals are over images and, where arms were
trained more than once, over trainings, too. Of one training they are over images alone, and do not tell how
far another one would come out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.text import counted
from beaufort.corruptions import SUBSETS
from beaufort.metrics import get_baseline
from beaufort.metrics.stats import RESAMPLES, Estimate, resample
from beaufort.studies.enhancements.enhancement_settings import CLEAN, EnhancementSettings
from beaufort.studies.predictions import StudyPredictions

Floats = NDArray[np.float64]
Rights = NDArray[np.bool_]

_ALL = (1, 2, 3, 4, 5)
GROUPS = ("noise", "blur", "weather", "digital")
"""The four kinds of corruptions."""


@dataclass(frozen=True)
class Normalizer:
    """Errors that others are divided by: clean, and by corruption the sum over severities."""

    clean: float
    sums: Mapping[str, float]
    severities: int


@dataclass(frozen=True)
class Contributions:
    """What each image adds to a number, in percent, `(seeds, images)`; the mean is the number."""

    values: Floats
    ends: tuple[float, float]
    """The least and the most that an image can add."""


@dataclass(frozen=True)
class ArmMetrics:
    """The numbers of one arm, and what they come from."""

    rows: Mapping[str, Contributions]
    """By metric."""
    corruptions: tuple[str, ...]
    """Those that mCE is over; each has a row `NAME CE`."""
    conditions: tuple[str, ...] = ()
    right: Rights | None = None
    """Which images the first seed recognizes under each condition, `(conditions, images)`."""

    @property
    def seeds(self) -> int:
        """How many trainings the numbers are means of."""
        return len(self.rows["mCE"].values)

    def mean(self, metric: str, seeds: int | None = None) -> float:
        """A number, of the first seeds if there is a limit."""
        return float(self.rows[metric].values[:seeds].mean())


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


def normalizer_of(answers: StudyPredictions) -> Normalizer:
    """The errors of a network of our own."""
    rows = _rows(answers.conditions)
    errors = 1 - answers.correct.mean(axis=1)
    sums = {name: float(errors[places].sum()) for name, places in rows.items() if name != CLEAN}
    if faultless := [name for name, total in sums.items() if total == 0]:
        raise OptionError(
            "the network whose errors divide others' must make some under every corruption, got none of "
            f"{counted(answers.correct.shape[1], 'image')} under {', '.join(faultless)}; use more images"
        )
    return Normalizer(float(errors[rows[CLEAN][0]]), sums, len(next(iter(rows[n] for n in sums))))


def metrics_of_arm(
    answers: Sequence[StudyPredictions], base: Normalizer, settings: EnhancementSettings
) -> ArmMetrics:
    """The shares of one arm, a row a seed."""
    rows = _rows(answers[0].conditions)
    wrong = np.stack([~one.correct for one in answers]).astype(np.float64)
    clean = wrong[:, rows[CLEAN][0]]
    sums = {name: wrong[:, places].sum(axis=1) for name, places in rows.items() if name != CLEAN}
    # one image that is right only when it is clean, and one that is right only when it is not
    ends = _metrics(np.array([0.0, 1.0]), {n: np.array([base.severities, 0.0]) for n in sums}, base, settings)
    found = {
        name: Contributions(values, (float(ends[name].min()), float(ends[name].max())))
        for name, values in _metrics(clean, sums, base, settings).items()
    }
    return ArmMetrics(found, settings.corruptions, answers[0].conditions, answers[0].correct)


def _metrics(
    clean: Floats, sums: Mapping[str, Floats], base: Normalizer, settings: EnhancementSettings
) -> dict[str, Floats]:
    """By metric, what images add that are wrong on clean pictures and under so many severities."""
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
        **{f"{name} CE": ces[name] for name in settings.corruptions},
    }
    return {name: 100 * values for name, values in found.items()}


def _group_means(ces: Mapping[str, Floats], settings: EnhancementSettings) -> dict[str, Floats]:
    """Means over kinds of corruptions, over all but noise, and over the extra ones, for choices."""
    groups = {name: [one for one in settings.corruptions if one in SUBSETS[name]] for name in GROUPS}
    groups["other"] = [one for one in settings.corruptions if one not in SUBSETS["noise"]]
    groups["extra"] = [one for one in settings.extra if one in ces]
    return {name: np.mean([ces[one] for one in some], axis=0) for name, some in groups.items() if some}


def combined(*terms: tuple[float, Contributions]) -> Contributions:
    """A sum of numbers with factors, on the same images and the seeds that all of them have."""
    seeds = min(len(rows.values) for _, rows in terms)
    values: Floats = np.sum([factor * rows.values[:seeds] for factor, rows in terms], axis=0)
    each = [sorted(factor * end for end in rows.ends) for factor, rows in terms]
    return Contributions(values, (sum(low for low, _ in each), sum(high for _, high in each)))


def intervals(rows: Mapping[str, Contributions]) -> dict[str, Estimate]:
    """Means with 95 % intervals, over images and, of several seeds, over seeds; all of one number of each.

    Images are weighted anew in each resample, with one beside them that nobody has seen, at either end of
    what an image can add. A mean over seeds is off by its standard error times a number that is drawn from
    Student's t: so few seeds, weighted anew, would vary too little.
    """
    drawn = resample(np.stack([one.values.mean(axis=0) for one in rows.values()], axis=1), seed=0)
    seeds = len(next(iter(rows.values())).values)
    luck = np.random.default_rng(0).standard_t(seeds - 1, RESAMPLES) if seeds > 1 else np.zeros(RESAMPLES)
    lower, upper = (drawn.beside([one.ends[end] for one in rows.values()]) for end in (0, 1))
    found = {}
    for place, (name, one) in enumerate(rows.items()):
        means = one.values.mean(axis=1)
        off = luck * float(means.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else luck
        low, high = np.quantile(lower[:, place] + off, 0.025), np.quantile(upper[:, place] + off, 0.975)
        value = float(means.mean())
        ends = min(value, float(low)), max(value, float(high))
        found[name] = Estimate(value, *ends, one.values.shape[1])
    return found


def _rows(conditions: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, condition in enumerate(conditions):
        found.setdefault(condition.partition("@")[0], []).append(place)
    return found

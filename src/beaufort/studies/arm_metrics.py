"""mCE of each arm as a mean over images, with intervals over images and training runs.

With a fixed baseline, mCE and relative mCE are sums over images: each image contributes to them, and a
difference of two arms is the mean of differences of contributions. Intervals are over images and, for several
training runs, over runs. Those of one run are over images alone and do not show how another run would differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.text import counted
from beaufort.corruptions import SUBSETS
from beaufort.metrics import get_baseline
from beaufort.metrics.stats import RESAMPLES, Estimate, paired_interval, resample
from beaufort.studies.predictions import StudyPredictions
from beaufort.studies.study_file import StudySettings

Floats = NDArray[np.float64]

GROUPS = ("noise", "blur", "weather", "digital")
_ALL = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Normalizer:
    """Errors that others are divided by: clean, and by corruption the sum over severities."""

    clean: float
    sums: Mapping[str, float]
    severities: int


@dataclass(frozen=True)
class Contributions:
    """What each image adds to a metric, in percent, `(seeds, images)`; the mean is the metric."""

    values: Floats
    ends: tuple[float, float]
    """The least and the most that an image can add."""


@dataclass(frozen=True)
class ArmMetrics:
    """The metrics of one arm."""

    rows: Mapping[str, Contributions]
    """By metric."""
    corruptions: tuple[str, ...]
    """The corruptions in mCE; each has a row `NAME CE`."""
    conditions: tuple[str, ...] = ()
    right: NDArray[np.bool_] | None = None
    """Whether predictions of the first seed are correct, `(conditions, images)`."""

    @property
    def seeds(self) -> int:
        return len(self.rows["mCE"].values)

    def mean(self, metric: str, seeds: int | None = None) -> float:
        """Return a metric, of the first seeds if a number is given."""
        return float(self.rows[metric].values[:seeds].mean())


def alexnet(settings: StudySettings) -> Normalizer:
    """Return the published errors of AlexNet; those of the extra corruptions are means over severities."""
    baseline = get_baseline("alexnet")
    errors = baseline.select((*settings.corruptions, *settings.extra), _ALL)
    sums = {}
    for name, values in errors.items():
        each = np.broadcast_to(np.asarray(values, np.float64), len(_ALL))
        sums[name] = float(sum(each[severity - 1] for severity in settings.severities))
    assert baseline.clean is not None
    return Normalizer(float(baseline.clean), sums, len(settings.severities))


def normalizer_of(predictions: StudyPredictions, clean: str = "clean") -> Normalizer:
    """Return the errors of a network of the study."""
    rows = _rows(predictions.conditions)
    errors = 1 - predictions.correct.mean(axis=1)
    sums = {name: float(errors[places].sum()) for name, places in rows.items() if name != clean}
    if faultless := [name for name, total in sums.items() if total == 0]:
        raise OptionError(
            "the network that normalizes CEs makes no errors on "
            f"{counted(predictions.correct.shape[1], 'image')} under {', '.join(faultless)}; use more images"
        )
    return Normalizer(float(errors[rows[clean][0]]), sums, len(next(iter(rows[n] for n in sums))))


def metrics_of_arm(
    predictions: Sequence[StudyPredictions], base: Normalizer, settings: StudySettings
) -> ArmMetrics:
    """Return the metrics of one arm, one row per seed."""
    rows = _rows(predictions[0].conditions)
    wrong = np.stack([~one.correct for one in predictions]).astype(np.float64)
    clean = wrong[:, rows[settings.clean][0]]
    sums = {name: wrong[:, places].sum(axis=1) for name, places in rows.items() if name != settings.clean}
    # images that are right or wrong when clean, and always wrong or always right when corrupted
    most = float(base.severities)
    extremes = {name: np.array([most, most, 0.0, 0.0]) for name in sums}
    ends = _metrics(np.array([0.0, 1.0, 0.0, 1.0]), extremes, base, settings)
    metrics = {
        name: Contributions(values, (float(ends[name].min()), float(ends[name].max())))
        for name, values in _metrics(clean, sums, base, settings).items()
    }
    return ArmMetrics(metrics, settings.corruptions, predictions[0].conditions, predictions[0].correct)


def _metrics(
    clean: Floats, sums: Mapping[str, Floats], base: Normalizer, settings: StudySettings
) -> dict[str, Floats]:
    """Return what images add to each metric, given their clean error and number of errors by corruption."""
    names, count = settings.corruptions, base.severities
    ces = {name: sums[name] / base.sums[name] for name in sums}
    relative = [
        (sums[name] - count * clean) / (base.sums[name] - count * base.clean)
        for name in names
        if base.sums[name] > count * base.clean
    ]
    groups = {group: [name for name in names if name in SUBSETS[group]] for group in GROUPS}
    groups["other"] = [name for name in names if name not in SUBSETS["noise"]]
    groups["extra"] = [name for name in settings.extra if name in ces]
    metrics = {
        "clean error": clean,
        "mCE": np.mean([ces[name] for name in names], axis=0),
        **({"relative mCE": np.mean(relative, axis=0)} if relative else {}),
        **{f"{g} CE": np.mean([ces[name] for name in some], axis=0) for g, some in groups.items() if some},
        **{f"{name} CE": ces[name] for name in names},
    }
    if not settings.severities:  # the metric of MNIST-C
        metrics["mean error"] = np.mean([clean, *(sums[name] for name in names)], axis=0)
    return {name: 100 * values for name, values in metrics.items()}


def _rows(conditions: Sequence[str]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for place, condition in enumerate(conditions):
        rows.setdefault(condition.partition("@")[0], []).append(place)
    return rows


def combined(*terms: tuple[float, Contributions]) -> Contributions:
    """Return a weighted sum of metrics, on the same images and the seeds that all of them have."""
    seeds = min(len(rows.values) for _, rows in terms)
    values: Floats = np.sum([factor * rows.values[:seeds] for factor, rows in terms], axis=0)
    each = [sorted(factor * end for end in rows.ends) for factor, rows in terms]
    return Contributions(values, (sum(low for low, _ in each), sum(high for _, high in each)))


def intervals(
    rows: Mapping[str, Contributions], paired: Collection[str] = (), level: float = 0.95
) -> dict[str, Estimate]:
    """Return means with intervals over images and, for several seeds, over seeds.

    Each resample reweights the images, together with an unseen one at either end of what an image can add. A
    mean over seeds is off by its standard error times a number drawn from Student's t: reweighting so few
    seeds would give intervals that are too narrow.

    Args:
        rows: what each image adds to the numbers, by name.
        paired: names of the differences between two arms. What the images contribute to their intervals is
            scaled to the paired interval.
        level: confidence level.
    """
    tails = (1 - level) / 2, (1 + level) / 2
    drawn = resample(np.stack([one.values.mean(axis=0) for one in rows.values()], axis=1), seed=0)
    seeds = len(next(iter(rows.values())).values)
    luck = np.random.default_rng(0).standard_t(seeds - 1, RESAMPLES) if seeds > 1 else np.zeros(RESAMPLES)
    lower, upper = (drawn.beside([one.ends[end] for one in rows.values()]) for end in (0, 1))
    estimates = {}
    for place, (name, one) in enumerate(rows.items()):
        means = one.values.mean(axis=1)
        off = luck * float(means.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else luck
        value = float(means.mean())
        below, above = lower[:, place] - value, upper[:, place] - value
        if name in paired and one.ends[0] < one.ends[1]:
            exact = paired_interval(one.values.mean(axis=0), low=one.ends[0], high=one.ends[1], level=level)
            below = below * ((exact.low - value) / np.quantile(below, tails[0]))
            above = above * ((exact.high - value) / np.quantile(above, tails[1]))
        low, high = (
            value + np.quantile(ends + off, p) for ends, p in zip((below, above), tails, strict=True)
        )
        ends = min(value, float(low)), max(value, float(high))
        estimates[name] = Estimate(value, *ends, one.values.shape[1], level)
    return estimates

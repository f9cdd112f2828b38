"""mCE of each arm as a mean over images, and all arms of a study from its predictions.

With a fixed baseline, mCE and relative mCE are sums over images: each image contributes to them, and a
difference of two arms is the mean of differences of contributions. Intervals are over images and, for several
training runs, over runs. Those of one run are over images alone and do not show how another run would differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.text import counted
from beaufort.corruptions import SUBSETS
from beaufort.metrics import get_baseline
from beaufort.metrics.stats import RESAMPLES, Estimate, paired_interval, resample
from beaufort.studies.enhancements.enhancement_arms import (
    BASE,
    CLEAN,
    CONTROL,
    EnhancementSettings,
    PhotoPass,
    condition_file,
    photo_conditions,
)
from beaufort.studies.failed_runs import CheckedRuns, check_runs, ending_facts
from beaufort.studies.prediction_archive import find_predictions, has_predictions, predictions_by_seed
from beaufort.studies.predictions import (
    StudyPredictions,
    correct_only,
)

Floats = NDArray[np.float64]

CIFAR = "CIFAR-10"
GROUPS = ("noise", "blur", "weather", "digital")
_ALL = (1, 2, 3, 4, 5)
_PHOTOS: Mapping[PhotoPass, str] = {
    "filters": "photos",
    "crops": "photos in crops",
    "styles": "stylized photos",
}


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


def alexnet(settings: EnhancementSettings) -> Normalizer:
    """Return the published errors of AlexNet; those of the extra corruptions are means over severities."""
    baseline = get_baseline("alexnet")
    errors = baseline.select((*settings.corruptions, *settings.extra), _ALL)
    sums = {}
    for name, values in errors.items():
        each = np.broadcast_to(np.asarray(values, np.float64), len(_ALL))
        sums[name] = float(sum(each[severity - 1] for severity in settings.severities))
    assert baseline.clean is not None
    return Normalizer(float(baseline.clean), sums, len(settings.severities))


def normalizer_of(predictions: StudyPredictions) -> Normalizer:
    """Return the errors of a network of the study."""
    rows = _rows(predictions.conditions)
    errors = 1 - predictions.correct.mean(axis=1)
    sums = {name: float(errors[places].sum()) for name, places in rows.items() if name != CLEAN}
    if faultless := [name for name, total in sums.items() if total == 0]:
        raise OptionError(
            "the network that normalizes CEs makes no errors on "
            f"{counted(predictions.correct.shape[1], 'image')} under {', '.join(faultless)}; use more images"
        )
    return Normalizer(float(errors[rows[CLEAN][0]]), sums, len(next(iter(rows[n] for n in sums))))


def metrics_of_arm(
    predictions: Sequence[StudyPredictions], base: Normalizer, settings: EnhancementSettings
) -> ArmMetrics:
    """Return the metrics of one arm, one row per seed."""
    rows = _rows(predictions[0].conditions)
    wrong = np.stack([~one.correct for one in predictions]).astype(np.float64)
    clean = wrong[:, rows[CLEAN][0]]
    sums = {name: wrong[:, places].sum(axis=1) for name, places in rows.items() if name != CLEAN}
    # one image that is right only when it is clean, and one that is right only when it is not
    ends = _metrics(np.array([0.0, 1.0]), {n: np.array([base.severities, 0.0]) for n in sums}, base, settings)
    metrics = {
        name: Contributions(values, (float(ends[name].min()), float(ends[name].max())))
        for name, values in _metrics(clean, sums, base, settings).items()
    }
    return ArmMetrics(metrics, settings.corruptions, predictions[0].conditions, predictions[0].correct)


def _metrics(
    clean: Floats, sums: Mapping[str, Floats], base: Normalizer, settings: EnhancementSettings
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


def intervals(rows: Mapping[str, Contributions], paired: Collection[str] = ()) -> dict[str, Estimate]:
    """Return means with 95 % intervals over images and, for several seeds, over seeds.

    Each resample reweights the images, together with an unseen one at either end of what an image can add. A
    mean over seeds is off by its standard error times a number drawn from Student's t: reweighting so few
    seeds would give intervals that are too narrow.

    Args:
        rows: what each image adds to the numbers, by name.
        paired: names of the differences between two arms. What the images contribute to their intervals is
            scaled to the paired interval.
    """
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
            exact = paired_interval(one.values.mean(axis=0), low=one.ends[0], high=one.ends[1])
            below = below * ((exact.low - value) / np.quantile(below, 0.025))
            above = above * ((exact.high - value) / np.quantile(above, 0.975))
        low, high = (value + np.quantile(ends + off, p) for ends, p in ((below, 0.025), (above, 0.975)))
        ends = min(value, float(low)), max(value, float(high))
        estimates[name] = Estimate(value, *ends, one.values.shape[1])
    return estimates


@dataclass(frozen=True)
class StudyArms:
    """All arms with predictions."""

    photos: Mapping[str, Mapping[str, ArmMetrics]]
    """By network and arm."""
    cifar: Mapping[str, ArmMetrics]
    settings: EnhancementSettings
    images: Mapping[str, int]
    styles: Mapping[str, StudyPredictions] = field(default_factory=dict)
    """Predictions on stylized photos by network."""
    runs: CheckedRuns = field(default_factory=CheckedRuns)
    left_out: Sequence[str] = ()
    """Predictions on CIFAR-10 that are not used, because those of an earlier seed are missing."""


def load_arms(folder: Path, settings: EnhancementSettings) -> StudyArms:
    """Read all predictions of a study."""
    photos: dict[str, dict[str, ArmMetrics]] = {}
    images: dict[str, int] = {}
    passes: tuple[PhotoPass, ...] = ("filters", "crops")
    for which in passes:
        for network, by_arm in photo_predictions(folder, which, settings).items():
            for arm, one in by_arm.items():
                images[_PHOTOS[which]] = one.correct.shape[1]
                metrics = metrics_of_arm([one], alexnet(settings), settings)
                photos.setdefault(network, {})[arm] = metrics
    stylized = photo_predictions(folder, "styles", settings)
    styles = {network: by_arm["plain"] for network, by_arm in stylized.items()}
    if styles:
        images[_PHOTOS["styles"]] = next(iter(styles.values())).correct.shape[1]
    counts = [images[name] for name in (_PHOTOS["filters"], _PHOTOS["styles"]) if name in images]
    if len(set(counts)) > 1:
        raise OptionError(
            f"photos/filters has predictions for {counts[0]} photos and photos/styles for {counts[1]}; "
            "delete the directory that is out of date"
        )
    # only seeds 0, 1, … up to the first that is missing, so that arms are compared seed by seed
    trained, left_out = {}, []
    for name, some in predictions_by_seed(folder, "cifar").items():
        usable = [one for seed, one in enumerate(some) if one.facts.get("seed", seed) == seed]
        left_out += [f"{name}, seed {one.facts['seed']}" for one in some[len(usable) :]]
        if usable:
            trained[name] = usable
    cifar: dict[str, ArmMetrics] = {}
    if BASE in trained:
        base = normalizer_of(trained[BASE][0])
        files = {
            f"cifar/{arm}-seed{n}.npz": one for arm, some in trained.items() for n, one in enumerate(some)
        }
        _check_alike(f"cifar/{BASE}-seed0.npz", files)
        cifar = {name: metrics_of_arm(some, base, settings) for name, some in trained.items()}
        images[CIFAR] = trained[BASE][0].correct.shape[1]
    return StudyArms(photos, cifar, settings, images, styles, _check_trained(trained), left_out)


def photo_predictions(
    folder: Path, which: PhotoPass, settings: EnhancementSettings
) -> dict[str, dict[str, StudyPredictions]]:
    """Return the predictions of a pass by network and arm; empty until all of its conditions are done."""
    names = photo_conditions(settings, which)
    files = [condition_file(which, name) for name in names]
    if not all(has_predictions(folder, file) for file in files):
        return {}
    each = {file: find_predictions(folder, file) for file in files}
    _check_alike(files[0], each)
    found: dict[str, dict[str, StudyPredictions]] = {}
    for key in each[files[0]].conditions:
        network, _, arm = key.partition("/")
        correct = np.stack([one.row(key) for one in each.values()]).astype(np.uint8)
        found.setdefault(network, {})[arm] = correct_only(names, correct, {})
    return found


def _check_alike(file: str, each: Mapping[str, StudyPredictions]) -> None:
    """Check that all files have the conditions and images of one, so that predictions can be paired."""
    first = each[file]
    for other, one in each.items():
        if one.conditions != first.conditions or one.correct.shape != first.correct.shape:
            sizes = [
                f"{counted(rows, 'row')} of {counted(images, 'image')}"
                for rows, images in (one.correct.shape, first.correct.shape)
            ]
            raise OptionError(
                f"{other} has {sizes[0]} and {file} has {sizes[1]}, so they cannot be compared; delete the "
                "file that is out of date"
            )


def _check_trained(trained: Mapping[str, Sequence[StudyPredictions]]) -> CheckedRuns:
    """Check the losses of all trained arms, and name the numbers that contain each."""
    line = "distances from the line of ResNets"
    inside = {
        BASE: "its rows, all differences to it, arms that start from it or test it, "
        f"{line}; of seed 0, every mCE",
        "resnet56": f"its rows, arms that start from it, {line}",
        "resnet110": f"its rows, {line}",
        **dict.fromkeys((CONTROL, "msdnet", "shake26-no-shake"), "its rows and all differences to it"),
    }
    return check_runs(
        (arm, inside.get(arm, "its rows"), ending_facts(one))
        for arm, some in trained.items()
        for one in some
        if one.facts.get("recipe", {}).get("name") == arm  # others test what another arm trained
    )

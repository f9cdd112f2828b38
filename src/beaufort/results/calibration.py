"""How far a model's confidence is from its accuracy, as the input gets worse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.calibration import confidence_bin
from beaufort.metrics.stats import Estimate, mean_interval, paired_half_width, resample
from beaufort.results.linear import Clusters, Linear
from beaufort.results.predictions import Predictions

BINS = 15

SCORES = ("confidence", "nll", "brier", "entropy")
"""Means over predictions, reported with the calibration error."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """Predictions sorted by confidence into bins of equal width."""

    ece: Estimate
    """Expected calibration error: the mean distance between confidence and accuracy, freed of the part that
    chance alone adds to it."""
    raw_ece: float
    """The same as it is usually printed, chance included."""
    floor: float
    """What a perfectly calibrated model with as many images would show in the mean, printed in that way."""
    accuracy: Estimate
    confidence: Estimate
    """The mean confidence."""
    nll: Estimate | None
    """None if it is infinite: a true class had the probability 0."""
    brier: Estimate
    entropy: Estimate
    """Means over all predictions; entropy and negative log likelihood in nats."""
    counts: tuple[int, ...]
    bin_confidence: tuple[float, ...]
    bin_accuracy: tuple[float, ...]
    """Means within each bin; 0 where it is empty."""


def calibrate(
    predictions: Predictions,
    units: Clusters | None = None,
    level: float = 0.95,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Calibration]:
    """The calibration on clean images and at each severity, all corruptions together.

    Suites with one published severity have `clean` and `corrupted`. Empty without probabilities.
    """
    found: dict[str, Calibration] = {}
    if not predictions.has_probabilities:
        return found
    for name, rows in calibration_rows(predictions).items():
        confidence = predictions.confidence[rows].astype(np.float64)
        counts, confident, correct = _bins(confidence, predictions.correct[rows])
        gaps = (confident - correct) / len(rows)
        ece, raw, floor = _ece(gaps, counts, confident, units, level, resamples, seed)
        estimates = {key: form.estimate(level) for key, form in score_forms(predictions, rows, units).items()}
        total = np.maximum(counts.sum(axis=0), 1e-300)
        found[name] = Calibration(
            ece=ece,
            raw_ece=raw,
            floor=floor,
            accuracy=estimates["accuracy"],
            confidence=estimates["confidence"],
            nll=estimates.get("nll"),
            brier=estimates["brier"],
            entropy=estimates["entropy"],
            counts=tuple(int(count) for count in counts.sum(axis=0)),
            bin_confidence=tuple(map(float, confident.sum(axis=0) / total)),
            bin_accuracy=tuple(map(float, correct.sum(axis=0) / total)),
        )
    return found


def calibration_rows(predictions: Predictions) -> dict[str, list[int]]:
    """The rows of clean images and of each severity."""
    groups: dict[str, list[int]] = {}
    for row, condition in enumerate(predictions.conditions):
        corrupted = "corrupted" if condition.severity is None else str(condition.severity)
        groups.setdefault("clean" if condition.clean else corrupted, []).append(row)
    return groups


def score_forms(
    predictions: Predictions, rows: Sequence[int], units: Clusters | None = None
) -> dict[str, Linear]:
    """Accuracy and the scores beside the calibration error, as means over images.

    A negative log likelihood has no upper bound: its interval reaches as far as the largest one that was seen
    suggests. It is left out where it is infinite, as a true class has the probability 0 there.
    """
    undecided = math.log(max(2, 1 + int(predictions.top.max())))
    most = {"accuracy": 1.0, "confidence": 1.0, "brier": 2.0}
    found = {}
    for name in ("accuracy", *SCORES):
        source = predictions.correct if name == "accuracy" else getattr(predictions, name)
        means = source[rows].mean(axis=0, dtype=np.float64)
        if np.isfinite(means).all():
            high = most.get(name, max(undecided, float(means.max())))
            form = Linear.of(0.0, {predictions.model: ((means / high)[:, None], np.array([high]))})
            found[name] = form.clustered(units)
    return found


def _ece(
    gaps: Floats,
    counts: Floats,
    confident: Floats,
    units: Clusters | None,
    level: float,
    resamples: int,
    seed: int,
) -> tuple[Estimate, float, float]:
    """Return the calibration error with its interval, the error as it is usually printed, and its floor.

    The usual estimate is the sum of the sizes of the gaps between confidence and accuracy in the bins, and
    chance enlarges it. The interval inverts a test: it consists of the errors that could have shown what was
    seen, if the true gaps are proportional to those that were seen and chance is that of the bootstrap. Two
    limits protect it where few mistakes were seen: the upper end is further away by what `paired_interval`
    adds for unseen images, but at most that of Gaffke's interval of the signed gaps.
    """
    if units is not None:
        average = len(gaps) / (units.max() + 1)
        gaps, counts, confident = (
            np.stack([np.bincount(units, weights=column) for column in part.T], axis=1) / average
            for part in (gaps, counts, confident)
        )
    n = len(gaps)
    mean = gaps.mean(axis=0)
    raw = float(np.abs(mean).sum())
    spread = _spread(gaps, counts, confident)
    chance = _chance(gaps, spread, resamples, seed)
    tail = (1 - level) / 2

    # chance enlarges most where true gaps are zero: the lower end leaves out gaps that chance alone explains
    clear = np.sign(mean) * np.sqrt(np.maximum(mean**2 - spread**2, 0))
    clear *= raw / max(float(np.abs(clear).sum()), 1e-300) if clear.any() else 0.0

    def excess(gaps: Floats, probability: float) -> float:
        """Return a quantile of what would be seen if these were the true gaps, less what was seen."""
        return _quantile(np.abs(gaps + chance).sum(axis=1), probability) - raw

    signed = gaps @ np.where(mean < 0, -1.0, 1.0)
    most = max(1.0, float(np.abs(signed).max()))
    highest = mean_interval(signed, low=-most, high=most, level=level).high
    low = raw * _crossing(lambda scale: excess(scale * clear, 1 - tail), 0.0, 1.0) if clear.any() else 0.0
    largest = max(1.0, highest / raw) if raw else 1.0
    high = raw * _crossing(lambda scale: excess(scale * mean, tail), 0.0, largest)
    high = max(min(high + _unseen(signed, most, level), highest), low)
    floor = float(_folded(np.zeros(BINS), spread).sum())
    value = _without_chance(np.abs(mean), spread, raw)
    return Estimate(min(max(value, low), high), low, high, n, level), raw, floor


def _chance(gaps: Floats, spread: Floats, resamples: int, seed: int) -> Floats:
    """Return what chance adds to the gaps, `(resamples, bins)`, with the standard deviations of `spread`."""
    mean = gaps.mean(axis=0)
    drawn = resample(gaps, resamples=resamples, seed=seed).means - mean
    seen = drawn.std(axis=0)
    flat = seen < 0.1 * spread  # hardly any mistake was seen: coins as the confidence says
    drawn[:, flat] = np.random.default_rng(seed).standard_normal((len(drawn), int(flat.sum())))
    seen[flat] = 1.0
    return np.asarray(drawn * np.divide(spread, seen, out=np.zeros(BINS), where=seen > 0), np.float64)


def _unseen(signed: Floats, most: float, level: float) -> float:
    """Return by how much unseen images widen an interval, compared with Student's."""
    n = len(signed)
    if n < 2:
        return most
    deviation = float(signed.std(ddof=1))
    far = most - float(signed.mean())
    return paired_half_width(deviation, n, far, level) - paired_half_width(deviation, n, 0.0, level)


def _quantile(values: Floats, probability: float) -> float:
    """Return what `np.quantile` does, which takes several times as long for a thousand numbers."""
    at = (len(values) - 1) * probability
    below = min(int(at), max(len(values) - 2, 0))
    above = min(below + 1, len(values) - 1)
    ordered = np.partition(values, (below, above))
    a, b, part = float(ordered[below]), float(ordered[above]), at - below
    return a + (b - a) * part if part < 0.5 else b - (b - a) * (1 - part)


def _crossing(rising: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function is zero; an end if it is not between them."""
    if rising(low) >= 0:
        return low
    if rising(high) <= 0:
        return high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) >= 0 else (middle, high)
    return (low + high) / 2


def _spread(gaps: Floats, counts: Floats, confident: Floats) -> Floats:
    """The standard deviation of each bin's gap: as seen, or of coins that fall as the confidence says.

    The second counts where hardly any mistakes were seen, and the first says that there is no spread.
    """
    n = len(gaps)
    seen = gaps.var(axis=0, ddof=1) / n if n > 1 else np.zeros(BINS)
    total, sure = counts.sum(axis=0), confident.sum(axis=0)
    mean = np.divide(sure, total, out=np.zeros(BINS), where=total > 0)
    coins = total * mean * (1 - mean) / max(float(total.sum()), 1.0) ** 2
    wider: Floats = np.sqrt(np.maximum(seen, coins))
    return wider


def _folded(gap: Floats, spread: Floats) -> Floats:
    """The expected size of normal numbers around `gap`."""
    wide = np.maximum(spread, 1e-300)
    ratio = np.minimum(gap / wide, 1e3)  # larger ones would overflow, and change nothing
    inside = np.array([math.erf(one / math.sqrt(2)) for one in ratio])
    size: Floats = wide * math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2) + gap * inside
    return size


def _without_chance(gaps: Floats, spread: Floats, raw: float) -> float:
    """The calibration error without its chance part: gaps are scaled until they would show what was seen."""
    if float(_folded(0 * gaps, spread).sum()) >= raw:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if float(_folded(middle * gaps, spread).sum()) < raw:
            low = middle
        else:
            high = middle
    return low * raw


def _bins(confidence: Floats, correct: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """For each image and bin: how many of its predictions fall there, their confidence, the correct ones."""
    images = confidence.shape[1]
    place = confidence_bin(confidence, BINS)
    flat = (np.arange(images) * BINS + place).ravel()
    size = images * BINS

    def summed(weights: NDArray[np.float64] | None) -> Floats:
        return np.bincount(flat, weights=weights, minlength=size).reshape(images, BINS).astype(np.float64)

    return summed(None), summed(confidence.ravel()), summed(correct.ravel().astype(np.float64))

"""How far a model's confidence is from its accuracy, as the input gets worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.calibration import confidence_bin, ece_from_bins
from beaufort.results.answers import Answers
from beaufort.stats import Estimate, bootstrap_means

__all__ = ["BINS", "Calibration", "calibrate"]

BINS = 15
_RESAMPLES = 1000


@dataclass(frozen=True)
class Calibration:
    """Answers sorted by confidence into bins of equal width."""

    ece: Estimate
    """Expected calibration error: the mean distance between confidence and accuracy."""
    confidence: float
    """The mean confidence."""
    accuracy: float
    nll: float
    brier: float
    entropy: float
    """Means over all answers; entropy and negative log likelihood in nats."""
    counts: tuple[int, ...]
    bin_confidence: tuple[float, ...]
    bin_accuracy: tuple[float, ...]
    """Means within each bin; 0 where it is empty."""


def calibrate(answers: Answers, level: float = 0.95) -> dict[str, Calibration]:
    """The calibration on clean images and at each severity, all corruptions together.

    Suites with one published severity have `clean` and `corrupted`.
    """
    groups: dict[str, list[int]] = {}
    for row, condition in enumerate(answers.conditions):
        if condition.clean:
            name = "clean"
        else:
            name = "corrupted" if condition.severity is None else str(condition.severity)
        groups.setdefault(name, []).append(row)
    return {name: _calibration(answers, rows, level) for name, rows in groups.items()}


def _calibration(answers: Answers, rows: Sequence[int], level: float) -> Calibration:
    confidence = answers.confidence[rows].astype(np.float64)
    correct = answers.correct[rows]
    columns = _bin_columns(confidence, correct)
    sums = columns.mean(axis=0, dtype=np.float64).reshape(3, BINS)
    counts = columns[:, :BINS].sum(axis=0, dtype=np.float64)
    value = float(ece_from_bins(*sums))
    drawn = bootstrap_means(columns, resamples=_RESAMPLES).reshape(-1, 3, BINS)
    resampled = np.asarray(ece_from_bins(drawn[:, 0], drawn[:, 1], drawn[:, 2]))
    tail = (1 - level) / 2
    # Resampling adds noise of its own to every bin, which ECE counts as distance: the resamples lie too
    # high, by about as much as the estimate does. The basic interval turns them over.
    low, high = 2 * value - np.quantile(resampled, (1 - tail, tail))
    share = np.maximum(sums[0], 1e-300)
    return Calibration(
        Estimate(value, float(np.clip(low, 0, value)), float(np.clip(high, value, 1)), len(answers), level),
        float(confidence.mean()),
        float(correct.mean()),
        float(answers.nll[rows].mean(dtype=np.float64)),
        float(answers.brier[rows].mean(dtype=np.float64)),
        float(answers.entropy[rows].mean(dtype=np.float64)),
        tuple(int(count) for count in counts),
        tuple(map(float, sums[1] / share)),
        tuple(map(float, sums[2] / share)),
    )


def _bin_columns(confidence: NDArray[np.float64], correct: NDArray[np.bool_]) -> NDArray[np.float32]:
    """For each image and bin: how many of its answers fall there, their confidence, the correct ones."""
    images = confidence.shape[1]
    place = confidence_bin(confidence, BINS)
    flat = (np.arange(images) * BINS + place).ravel()
    size = images * BINS
    parts = [
        np.bincount(flat, minlength=size),
        np.bincount(flat, weights=confidence.ravel(), minlength=size),
        np.bincount(flat, weights=correct.ravel(), minlength=size),
    ]
    columns: NDArray[np.float32] = np.hstack([part.reshape(images, BINS) for part in parts]).astype(
        np.float32
    )
    return columns

"""Simulate the coverage of the 95 % intervals of `score` and `compare`.

    python -m benchmarks interval-coverage                  # every case; most of an hour
    python -m benchmarks interval-coverage --repeats 50 --images 20,50

Each simulated image has a difficulty, normally distributed with standard deviation σ on the logit scale, that
all of its versions share: versions are independent for σ = 0, and nearly all or none of them fail for σ = 3.
The true value is an integral over difficulties and therefore known. Difficulties of two models have
correlation 0.8.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics import get_baseline
from beaufort.results import Predictions, Results, compare, score
from beaufort.suites import Suite
from benchmarks.recording import record

IMAGES = (20, 50, 200, 2000)
ACCURACIES = (0.005, 0.05, 0.5, 0.95, 0.995)
SPREADS = (0.0, 1.5, 3.0)
EASIER = 0.7
"""Advantage of clean images in logits; the second model has half of it over the first."""
OVERCONFIDENT = 1.0
"""Excess confidence of the second model in logits; the first model is calibrated."""

SUITE = Suite(
    name="simulated",
    version=1,
    dataset="made",
    scale="imagenet",
    corruptions=("fog", "contrast", "snow"),
    severities=(1, 3, 5),
    baseline="alexnet",
    metrics=("mce", "relative_mce", "mean_accuracy"),
)

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(181)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def sigmoid(logit: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-logit))


def mean_over_photos(center: float, spread: float) -> float:
    """Return the accuracy of a model whose logit on an image of average difficulty is `center`."""
    return float(WEIGHTS @ sigmoid(center + spread * NODES))


def center_of(accuracy: float, spread: float) -> float:
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_over_photos(middle, spread) < accuracy else (low, middle)
    return low


@dataclass(frozen=True)
class TrueValues:
    """The simulated quantities in the limit of infinitely many images."""

    condition: float
    mean: float
    mce: float
    relative_mce: float
    difference: float
    ece: float
    """Of the second model; that of the first is 0."""


def true_values(center: float, spread: float) -> TrueValues:
    clean, corrupted = (mean_over_photos(center + shift, spread) for shift in (EASIER, 0.0))
    other = mean_over_photos(center + EASIER / 2, spread)
    alexnet = get_baseline("alexnet")
    assert alexnet.clean is not None
    base = {
        name: float(np.mean(np.asarray(alexnet.select([name], (1, 3, 5))[name])))
        for name in SUITE.corruptions
    }
    ratios = [(1 - corrupted) / one for one in base.values()]
    lost = [(clean - corrupted) / (one - alexnet.clean) for one in base.values()]
    return TrueValues(
        corrupted,
        corrupted,
        float(np.mean(ratios)),
        float(np.mean(lost)),
        other - corrupted,
        _binned_gap(center + EASIER / 2, spread),
    )


def _binned_gap(center: float, spread: float) -> float:
    """Return the expected calibration error of an overconfident model over bins of equal width."""
    z = np.linspace(-9, 9, 400_001)
    density = np.exp(-z * z / 2)
    logit = center + spread * z
    confidence = sigmoid(logit + OVERCONFIDENT)
    place = np.clip(np.ceil(confidence * 15).astype(int) - 1, 0, 14)
    gaps = np.bincount(place, weights=density * (confidence - sigmoid(logit)), minlength=15)
    return float(np.abs(gaps).sum() / density.sum())


def simulate(rng: np.random.Generator, images: int, center: float, spread: float) -> Results:
    """Return predictions of two models for all versions of some images."""
    shared = rng.standard_normal(images)
    conditions = tuple(SUITE.conditions("made"))
    labels = np.zeros(images, np.int32)
    predictions = {}
    for name, shift, own in (("one", 0.0, shared), ("two", EASIER / 2, _related(rng, shared))):
        easier = np.array([EASIER * condition.clean for condition in conditions])[:, None]
        logit = center + shift + easier + spread * own
        right = rng.random(logit.shape) < sigmoid(logit)
        confidence = sigmoid(logit + (OVERCONFIDENT if name == "two" else 0.0)).astype(np.float32)
        nothing = np.ones(logit.shape, np.float32)
        top = np.where(right, 0, 1).astype(np.int32)[..., None]
        ids = tuple(map(str, range(images)))
        predictions[name] = Predictions(
            name, conditions, ids, labels, top, confidence, nothing, nothing, nothing, unread=0
        )
    return Results.of(SUITE, predictions)


def _related(rng: np.random.Generator, shared: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.8 * shared + 0.6 * rng.standard_normal(len(shared))


def covered(results: Results, true: TrueValues, seed: int) -> dict[str, bool]:
    """Return whether each interval contains its true value."""
    scores = score(results, resamples=300, seed=seed)
    one, two = (next(m for m in scores.models if m.model == name) for name in ("one", "two"))
    at = next(condition for condition in one.conditions if condition.severity == 5)
    pair = scores.pairs.forms["two"]["mean_accuracy"] - scores.pairs.forms["one"]["mean_accuracy"]
    found = {
        "one condition": (one.conditions[at], true.condition),
        "mean accuracy": (one.metrics["mean_accuracy"], true.mean),
        "mCE": (one.metrics["mce"], true.mce),
        "relative mCE": (one.metrics["relative_mce"], true.relative_mce),
        "paired difference": (pair.estimate(0.95), true.difference),
        "ECE, calibrated": (one.calibration["5"].ece, 0.0),
        "ECE, overconfident": (two.calibration["5"].ece, true.ece),
    }
    return {name: estimate.low <= value <= estimate.high for name, (estimate, value) in found.items()}


def coverage(images: int, accuracy: float, spread: float, repeats: int) -> dict[str, float]:
    """Return the coverage of each interval."""
    center = center_of(accuracy, spread)
    true = true_values(center, spread)
    rng = np.random.default_rng([images, round(1e4 * accuracy), round(10 * spread)])
    hits: dict[str, int] = {}
    for seed in range(repeats):
        for name, hit in covered(simulate(rng, images, center, spread), true, seed).items():
            hits[name] = hits.get(name, 0) + hit
    return {name: count / repeats for name, count in hits.items()}


def together(repeats: int, models: int = 7, images: int = 200) -> float:
    """Return how often all intervals of all differences of equally good models contain zero."""
    rng = np.random.default_rng(7)
    center = center_of(0.6, 1.5)
    fine = 0
    for _ in range(repeats):
        predictions = {}
        for i in range(models):
            results = simulate(rng, images, center, 1.5)
            predictions[f"net{i}"] = results.predictions("one")
        made = compare(Results.of(SUITE, predictions))
        fine += not any(one.significant for one in made.differences)
    return fine / repeats


def cases(
    images: Sequence[int] = IMAGES,
    accuracies: Sequence[float] = ACCURACIES,
    spreads: Sequence[float] = SPREADS,
) -> Iterator[tuple[int, float, float]]:
    yield from ((n, accuracy, spread) for spread in spreads for accuracy in accuracies for n in images)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--images", default=",".join(map(str, IMAGES)))
    options = parser.parse_args()
    head: list[str] = []
    for n, accuracy, spread in cases([int(one) for one in options.images.split(",")]):
        found = coverage(n, accuracy, spread, options.repeats)
        if not head:
            head = ["σ", "accuracy", "images", *found]
            print("| " + " | ".join(head) + " |")
            print("|" + "---:|" * len(head))
        for name, value in found.items():
            record(f"{name}, σ {spread:g}, accuracy {accuracy:g}, {n} images", 100 * value, "%")
        cells = [
            f"{spread:g}",
            f"{100 * accuracy:g} %",
            f"{n:,}",
            *(f"{100 * x:.0f}" for x in found.values()),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
    error = 100 * math.sqrt(0.05 * 0.95 / options.repeats)
    print(f"standard error {error:.1f}; {options.repeats} repetitions per case")
    joint = record("all 63 differences of seven equal models contain zero", 100 * together(100), "%")
    print(f"seven equal models: all 63 intervals of differences contain zero in {joint:.0f} %")

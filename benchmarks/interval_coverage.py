"""How often 95 % intervals cover the truth, by simulation, through `score` and `compare`.

    python benchmarks/interval_coverage.py                  # every case, as a table; takes most of an hour
    python benchmarks/interval_coverage.py --repeats 50 --images 20,50

A simulated photo has a difficulty of its own, normally distributed with the standard deviation σ on the
logit scale, which all its versions share; σ = 0 makes versions independent, with σ = 3 a photo fails in
nearly all of them or in nearly none. The truth is an integral over difficulties, so it is known. Two models
find the same photos hard (correlation 0.8).
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

IMAGES = (20, 50, 200, 2000)
ACCURACIES = (0.005, 0.05, 0.5, 0.95, 0.995)
SPREADS = (0.0, 1.5, 3.0)
EASIER = 0.7
"""Clean images, in logits; the second model has half as much over the first."""
OVERCONFIDENT = 1.0
"""How many logits the second model's confidence is above the truth; the first one is calibrated."""

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
    """The accuracy of a model that gets a photo of average difficulty right with the logit `center`."""
    return float(WEIGHTS @ sigmoid(center + spread * NODES))


def center_of(accuracy: float, spread: float) -> float:
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_over_photos(middle, spread) < accuracy else (low, middle)
    return low


@dataclass(frozen=True)
class Truth:
    """What the simulated numbers are, for all photos there could be."""

    condition: float
    mean: float
    mce: float
    relative_mce: float
    difference: float
    ece: float
    """Of the second model; the first one's is 0."""


def truth_of(center: float, spread: float) -> Truth:
    clean, damaged = (mean_over_photos(center + shift, spread) for shift in (EASIER, 0.0))
    other = mean_over_photos(center + EASIER / 2, spread)
    alexnet = get_baseline("alexnet")
    assert alexnet.clean is not None
    base = {
        name: float(np.mean(np.asarray(alexnet.select([name], (1, 3, 5))[name])))
        for name in SUITE.corruptions
    }
    ratios = [(1 - damaged) / one for one in base.values()]
    lost = [(clean - damaged) / (one - alexnet.clean) for one in base.values()]
    return Truth(
        damaged,
        damaged,
        float(np.mean(ratios)),
        float(np.mean(lost)),
        other - damaged,
        _binned_gap(center + EASIER / 2, spread),
    )


def _binned_gap(center: float, spread: float) -> float:
    """The calibration error of a model whose confidence is too high, over bins of equal width."""
    z = np.linspace(-9, 9, 400_001)
    density = np.exp(-z * z / 2)
    logit = center + spread * z
    sure = sigmoid(logit + OVERCONFIDENT)
    place = np.clip(np.ceil(sure * 15).astype(int) - 1, 0, 14)
    gaps = np.bincount(place, weights=density * (sure - sigmoid(logit)), minlength=15)
    return float(np.abs(gaps).sum() / density.sum())


def simulate(rng: np.random.Generator, images: int, center: float, spread: float) -> Results:
    """Predictions of two models to every version of some photos."""
    shared = rng.standard_normal(images)
    conditions = tuple(SUITE.conditions("made"))
    labels = np.zeros(images, np.int32)
    answers = {}
    for name, shift, own in (("one", 0.0, shared), ("two", EASIER / 2, _related(rng, shared))):
        easier = np.array([EASIER * condition.clean for condition in conditions])[:, None]
        logit = center + shift + easier + spread * own
        right = rng.random(logit.shape) < sigmoid(logit)
        sure = sigmoid(logit + (OVERCONFIDENT if name == "two" else 0.0)).astype(np.float32)
        nothing = np.ones(logit.shape, np.float32)
        top = np.where(right, 0, 1).astype(np.int32)[..., None]
        ids = tuple(map(str, range(images)))
        answers[name] = Predictions(
            name, conditions, ids, labels, top, sure, nothing, nothing, nothing, unread=0
        )
    return Results.of(SUITE, answers)


def _related(rng: np.random.Generator, shared: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.8 * shared + 0.6 * rng.standard_normal(len(shared))


def covered(results: Results, truth: Truth, seed: int) -> dict[str, bool]:
    """Whether each interval holds its truth."""
    scores = score(results, resamples=300, seed=seed)
    one, two = (next(m for m in scores.models if m.model == name) for name in ("one", "two"))
    at = next(condition for condition in one.conditions if condition.severity == 5)
    pair = scores.pairs.forms["two"]["mean_accuracy"] - scores.pairs.forms["one"]["mean_accuracy"]
    found = {
        "one condition": (one.conditions[at], truth.condition),
        "mean accuracy": (one.metrics["mean_accuracy"], truth.mean),
        "mCE": (one.metrics["mce"], truth.mce),
        "relative mCE": (one.metrics["relative_mce"], truth.relative_mce),
        "paired difference": (pair.estimate(0.95), truth.difference),
        "ECE, calibrated": (one.calibration["5"].ece, 0.0),
        "ECE, overconfident": (two.calibration["5"].ece, truth.ece),
    }
    return {name: estimate.low <= value <= estimate.high for name, (estimate, value) in found.items()}


def coverage(images: int, accuracy: float, spread: float, repeats: int) -> dict[str, float]:
    """The share of repetitions in which each interval covers the truth."""
    center = center_of(accuracy, spread)
    truth = truth_of(center, spread)
    rng = np.random.default_rng([images, round(1e4 * accuracy), round(10 * spread)])
    hits: dict[str, int] = {}
    for seed in range(repeats):
        for name, hit in covered(simulate(rng, images, center, spread), truth, seed).items():
            hits[name] = hits.get(name, 0) + hit
    return {name: count / repeats for name, count in hits.items()}


def together(repeats: int, models: int = 7, images: int = 200) -> float:
    """How often all intervals of all differences of equally good models hold zero."""
    rng = np.random.default_rng(7)
    center = center_of(0.6, 1.5)
    fine = 0
    for _ in range(repeats):
        answers = {}
        for i in range(models):
            results = simulate(rng, images, center, 1.5)
            answers[f"net{i}"] = results.predictions("one")
        made = compare(Results.of(SUITE, answers))
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
    given = parser.parse_args()
    head: list[str] = []
    for n, accuracy, spread in cases([int(one) for one in given.images.split(",")]):
        found = coverage(n, accuracy, spread, given.repeats)
        if not head:
            head = ["σ", "accuracy", "images", *found]
            print("| " + " | ".join(head) + " |")
            print("|" + "---:|" * len(head))
        cells = [
            f"{spread:g}",
            f"{100 * accuracy:g} %",
            f"{n:,}",
            *(f"{100 * x:.0f}" for x in found.values()),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
    print(
        f"give or take {100 * math.sqrt(0.05 * 0.95 / given.repeats):.1f}; {given.repeats} repetitions a case"
    )
    print(f"seven equal models: all 63 intervals of differences hold zero in {together(100):.0%}")


if __name__ == "__main__":
    main()

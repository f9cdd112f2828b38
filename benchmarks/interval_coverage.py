"""Simulate the coverage of the 95 % intervals of `score` and `compare`.

    python -m benchmarks interval-coverage                       # every case; most of an hour
    python -m benchmarks interval-coverage --repeats 50 --images 20,50
    python -m benchmarks interval-coverage differences ece pairs   # tables of the documentation

Each simulated image has a difficulty, normally distributed with standard deviation σ on the logit scale, that
all of its versions share: versions are independent for σ = 0, and nearly all or none of them fail for σ = 3.
The true value is an integral over difficulties and therefore known. Difficulties of two models have
correlation 0.8.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics import get_baseline
from beaufort.metrics.stats import (
    Estimate,
    mean_interval,
    mean_p_value,
    paired_interval,
    paired_p_value,
    simultaneous,
)
from beaufort.results import Predictions, Results, compare, score
from beaufort.results.calibration import calibrate
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
    """Return how often all intervals of equally good models contain zero, in both families."""
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


@dataclass(frozen=True)
class Drawn:
    """A case of paired differences: how to draw them, and their true mean."""

    name: str
    images: int
    draw: Callable[[np.random.Generator], NDArray[np.float64]]
    mean: float


def networks(images: int, accuracy: float, versions: int, alike: float, spread: float = 1.5) -> Drawn:
    """Return the difference of two networks whose difficulties of an image have a correlation of `alike`."""
    center = center_of(accuracy, spread)
    gap = EASIER / 2

    def draw(rng: np.random.Generator) -> NDArray[np.float64]:
        shared = rng.standard_normal(images)
        own = alike * shared + math.sqrt(1 - alike**2) * rng.standard_normal(images)
        coins = rng.random((versions, images))
        first, second = (
            coins < sigmoid(center + spread * shared),
            coins < sigmoid(center + gap + spread * own),
        )
        return np.asarray((second * 1.0 - first).mean(axis=0))

    mean = mean_over_photos(center + gap, spread) - mean_over_photos(center, spread)
    conditions = f"{versions} condition{'s' * (versions > 1)}"
    return Drawn(
        f"networks, {conditions}, accuracy {accuracy:.0%}, correlation {alike:g}", images, draw, mean
    )


def flips(images: int, expected: float, better: float) -> Drawn:
    """Return differences of 1 or -1 on `expected` images on average, 1 in the fraction `better` of them."""
    rate = expected / images
    chances = (rate * better, rate * (1 - better), 1 - rate)

    def draw(rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.choice([1.0, -1.0, 0.0], size=images, p=chances)

    return Drawn(f"{expected:g} expected to differ", images, draw, rate * (2 * better - 1))


DIFFERENCES = (
    networks(200, 0.9, 16, 0.8),
    networks(1000, 0.9, 16, 0.8),
    networks(200, 0.6, 1, 0.8),
    networks(1000, 0.6, 1, 0.8),
    networks(1000, 0.9, 16, 0.99),
    flips(200, 1, 1.0),
    flips(200, 3, 0.75),
    flips(1000, 10, 1.0),
)


def student(values: NDArray[np.float64]) -> Estimate:
    """Return the mean with the interval of Student's t."""
    from scipy.stats import t

    mean, n = float(values.mean()), len(values)
    half = float(t.ppf(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n))
    return Estimate(mean, mean - half, mean + half, n)


INTERVALS: dict[str, Callable[[NDArray[np.float64]], Estimate]] = {
    "Gaffke": lambda values: mean_interval(values, low=-1),
    "paired": paired_interval,
    "t": student,
}


def measured(case: Drawn, repeats: int) -> dict[str, tuple[float, float]]:
    """Return the coverage and the mean width of each interval of a mean difference."""
    rng = np.random.default_rng([case.images, round(1e6 * abs(case.mean))])
    hits, widths = dict.fromkeys(INTERVALS, 0), dict.fromkeys(INTERVALS, 0.0)
    for _ in range(repeats):
        values = case.draw(rng)
        for name, interval in INTERVALS.items():
            found = interval(values)
            hits[name] += found.low - 1e-12 <= case.mean <= found.high + 1e-12
            widths[name] += found.high - found.low
    return {name: (hits[name] / repeats, widths[name] / repeats) for name in INTERVALS}


def differences(repeats: int) -> None:
    """Print the coverage and width of intervals of paired differences."""
    print("| case | images | Gaffke | paired | t |")
    print("|---|---:|---:|---:|---:|")
    for case in DIFFERENCES:
        found = measured(case, repeats)
        cells = []
        for name, (covered, width) in found.items():
            ratio = width / found["t"][1]
            record(f"coverage of {name}, {case.name}, {case.images} images", 100 * covered, "%")
            record(f"width of {name}, {case.name}, {case.images} images", ratio, "× t")
            cells.append(f"{100 * covered:.1f} %" + (f", {ratio:.2f} ×" if name != "t" else ""))
        print(f"| {case.name} | {case.images:,} | {' | '.join(cells)} |", flush=True)
    lowest = dict.fromkeys(INTERVALS, 1.0)
    widths = dict.fromkeys(INTERVALS, 0.0)
    for n, accuracy, spread in cases():
        for name, (covered, width) in measured(networks(n, accuracy, 9, 0.8, spread), repeats).items():
            lowest[name] = min(lowest[name], covered)
            widths[name] += width
    for name in INTERVALS:
        record(f"lowest coverage of {name} in 60 corners", 100 * lowest[name], "%")
        record(f"mean width of {name} in 60 corners", widths[name] / widths["t"], "× t")
    cells = [f"{100 * lowest[name]:.1f} %, {widths[name] / widths['t']:.2f} ×" for name in INTERVALS]
    print(f"| lowest of the 60 corners | 20 to 2,000 | {' | '.join(cells)} |", flush=True)


def ece(repeats: int) -> None:
    """Print the lowest coverage of the interval of ECE in the corners, and its width at 200 images."""
    lowest = {"one": 1.0, "two": 1.0}
    for n, accuracy, spread in cases(images=(20, 50, 200)):
        center = center_of(accuracy, spread)
        true = {"one": 0.0, "two": true_values(center, spread).ece}
        rng = np.random.default_rng([n, round(1e4 * accuracy), round(10 * spread)])
        hits, widths = dict.fromkeys(true, 0), dict.fromkeys(true, 0.0)
        for seed in range(repeats):
            results = simulate(rng, n, center, spread)
            for name, value in true.items():
                whole = results.predictions(name)
                rows = [i for i, condition in enumerate(whole.conditions) if condition.severity == 5]
                part = replace(
                    whole,
                    conditions=tuple(whole.conditions[i] for i in rows),
                    **{
                        key: getattr(whole, key)[rows]
                        for key in ("top", "confidence", "nll", "brier", "entropy")
                    },
                )
                found = calibrate(part, resamples=300, seed=seed)["5"].ece
                hits[name] += found.low <= value <= found.high
                widths[name] += found.high - found.low
        for name, kind in (("one", "calibrated"), ("two", "overconfident")):
            lowest[name] = min(lowest[name], hits[name] / repeats)
            case = f"ECE, {kind}, σ {spread:g}, accuracy {accuracy:g}, {n} images"
            record(f"coverage of {case}", 100 * hits[name] / repeats, "%")
            record(f"width of {case}", 100 * widths[name] / repeats, "points")
        print(
            f"σ {spread:g}, accuracy {accuracy:g}, {n} images: true ECE {100 * true['two']:.1f}, "
            + ", ".join(f"{100 * hits[k] / repeats:.0f} % ± {50 * widths[k] / repeats:.1f}" for k in true),
            flush=True,
        )
    print(
        f"lowest coverage: calibrated {100 * lowest['one']:.1f} %, overconfident {100 * lowest['two']:.1f} %"
    )


def pairs(repeats: int, models: int = 7) -> None:
    """Print how many pairs of seven models differ significantly, and how often any of equal ones do."""
    chosen = np.array(list(combinations(range(models), 2)), np.intp)
    print("| images | family | told apart, of 21 | false alarms |")
    print("|---:|---|---:|---:|")
    for images in (300, 1000):
        output = dict.fromkeys(
            ("Gaffke, Bonferroni over 63", "paired, Bonferroni over 21", "paired, max-T"), 0.0
        )
        alarms = dict.fromkeys(output, 0)
        for gap in (0.0, 0.12):
            rng = np.random.default_rng([images, round(100 * gap)])
            for _ in range(repeats):
                shared = rng.standard_normal(images)
                columns = []
                for model in range(models):
                    own = 0.8 * shared + 0.6 * rng.standard_normal(images)
                    columns.append(
                        (rng.random((9, images)) > sigmoid(0.4 + gap * model + 1.5 * own)).mean(axis=0)
                    )
                each = [columns[b] - columns[a] for a, b in chosen]
                wide = [mean_p_value(values, low=-1, high=1) for values in each]
                narrow = [paired_p_value(values) for values in each]
                joint = 1 - simultaneous(columns, chosen).level(0.95)
                limits = ((wide, 0.05 / 63), (narrow, 0.05 / 21), (narrow, joint))
                for name, (p_values, limit) in zip(output, limits, strict=True):
                    found = sum(p < limit for p in p_values)
                    if gap:
                        output[name] += found / repeats
                    else:
                        alarms[name] += bool(found)
        for name in output:
            record(f"pairs told apart, {name}, {images} images", output[name], "of 21")
            record(f"false alarms, {name}, {images} images", 100 * alarms[name] / repeats, "%")
            print(
                f"| {images:,} | {name} | {output[name]:.1f} | {100 * alarms[name] / repeats:.1f} % |",
                flush=True,
            )


TABLES = {"differences": differences, "ece": ece, "pairs": pairs}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="only these tables")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--images", default=",".join(map(str, IMAGES)))
    options = parser.parse_args()
    if options.tables:
        for name in options.tables:
            TABLES[name](options.repeats)
        return
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

"""Time intervals and tests, and simulate stopping at a precision.

    python -m benchmarks intervals speed
    python -m benchmarks intervals precision
    python -m benchmarks intervals savings STORE

`speed` times an interval and a p-value of 50,000 images, and 10,000 resamples of them under 75 conditions.
`precision` simulates how often the interval at the stop covers the true value. `savings` replays the stopping
rule of `beaufort run --precision` on the predictions of a store in random orders.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats import bootstrap_means, looks, mean_interval, mean_p_value
from beaufort.results import open_results
from benchmarks.recording import record


def speed(images: int, conditions: int, resamples: int) -> None:
    wrong = np.random.default_rng(0).random((images, conditions)) < 0.4
    bootstrap_means(wrong[:100], resamples=10)  # compiles
    mean_interval(wrong[:100].mean(axis=1))
    wall, cpu = [], []
    for seed in range(3):
        start, used = time.perf_counter(), time.process_time()
        bootstrap_means(wrong, resamples=resamples, seed=seed)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    fractions = wrong.mean(axis=1)
    start = time.perf_counter()
    mean_interval(fractions)
    between = time.perf_counter()
    mean_p_value(fractions - 0.4, low=-1, high=1)
    end = time.perf_counter()
    interval_ms = record("interval", 1000 * (between - start), "ms")
    p_value_ms = record("p-value", 1000 * (end - between), "ms")
    cpu_s = record("resamples", statistics.median(cpu), "s CPU")
    print(f"interval of {images:,} images: {interval_ms:.1f} ms")
    print(f"p-value of {images:,} images: {p_value_ms:.1f} ms")
    print(f"{resamples:,} resamples × {conditions} conditions × {images:,} images")
    print(f"{statistics.median(wall):.2f} s wall, {cpu_s:.2f} s CPU (median of 3)")


CASES: tuple[tuple[str, float, float, float], ...] = (
    ("30 % correct", 0.3, 2.0, 0.015),
    ("60 % correct, all versions or none", 0.6, 1.0, 0.02),
    ("98 % correct, all versions or none", 0.98, 0.3, 0.005),
    ("99 % correct, all versions or none", 0.99, 0.3, 0.006),
    ("1 % always wrong, a little noise", 0.01, 0.0, 0.005),
    ("0.3 % always wrong, a little noise", 0.003, 0.0, 0.005),
)
"""Name, mean accuracy (or fraction of images that are always wrong), correlation of versions, precision."""


def precision(repeats: int) -> None:
    print(f"coverage of {repeats} simulated 95 % intervals of a mean accuracy at the stop")
    print("| images | ± points | images used, mean | coverage |")
    print("|---|---:|---:|---:|")
    for name, accuracy, concentration, wanted in CASES:
        rng = np.random.default_rng(1)
        hits, used = 0, []
        for _ in range(repeats):
            values, expected = _photos(rng, accuracy, concentration)
            for count in looks(len(values)):
                estimate = mean_interval(values[:count])
                if estimate.half_width <= wanted:
                    break
            used.append(count)
            hits += estimate.low <= expected <= estimate.high
        record(f"coverage, {name}", hits / repeats, "")
        print(f"| {name} | {100 * wanted:g} | {statistics.mean(used):,.0f} | {hits / repeats:.1%} |")


def _photos(
    rng: np.random.Generator, accuracy: float, concentration: float, count: int = 12_000
) -> tuple[NDArray[np.float64], float]:
    """Return the fraction of correct versions of each image, and its true mean."""
    if concentration:
        a, b = accuracy * concentration, (1 - accuracy) * concentration
        return rng.binomial(75, rng.beta(a, b, count)) / 75, accuracy
    values = rng.binomial(75, 0.99, count) / 75
    values[rng.random(count) < accuracy] = 0
    return values, 0.99 * (1 - accuracy)


def savings(store: str, orders: int) -> None:
    """Replay the stopping rule for the mean accuracy over the corrupted conditions."""
    results = open_results(store)
    print(f"{results.suite} on {results.dataset}: images needed for a half-width of ± points")
    points = (2.0, 1.5, 1.0, 0.75)
    print("| model | images |", *(f"± {p} |" for p in points))
    print("|---|---:|", *("---:|" for _ in points))
    for name in results.models:
        predictions = results.predictions(name)
        rows = [row for row, condition in enumerate(predictions.conditions) if not condition.clean]
        accuracy = predictions.correct[rows].mean(axis=0)
        used: dict[float, list[int]] = {p: [] for p in points}
        for order in range(orders):
            mixed = accuracy[np.random.default_rng(order).permutation(len(accuracy))]
            for count in looks(len(mixed)):
                width = mean_interval(mixed[:count]).half_width
                for p in points:
                    met = width <= p / 100
                    if len(used[p]) == order and (met or count == len(mixed)):
                        used[p].append(count)
        cells = (f"{statistics.mean(used[p]):,.0f} |" for p in points)
        print(f"| {name} | {len(accuracy):,} |", *cells)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    fast = commands.add_parser("speed")
    fast.add_argument("--images", type=int, default=50_000)
    fast.add_argument("--conditions", type=int, default=75)
    fast.add_argument("--resamples", type=int, default=10_000)
    covered = commands.add_parser("precision")
    covered.add_argument("--repeats", type=int, default=1000)
    saved = commands.add_parser("savings")
    saved.add_argument("store")
    saved.add_argument("--orders", type=int, default=20)
    given = parser.parse_args()
    if given.command == "speed":
        speed(given.images, given.conditions, given.resamples)
    elif given.command == "precision":
        precision(given.repeats)
    else:
        savings(given.store, given.orders)

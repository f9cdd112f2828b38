"""How long the statistics take, and what stopping at a precision costs and saves.

    python benchmarks/intervals.py speed
    python benchmarks/intervals.py precision
    python benchmarks/intervals.py savings STORE

`speed`: an interval and a p-value of 50,000 images, and 10,000 resamples of them under 75 conditions.
`precision`: how often the interval at the stop covers the truth, for simulated photos. `savings`: the
stopping rule of `beaufort run --precision`, replayed on the answers of a store in random orders. How often
intervals cover the truth is `interval_coverage.py`'s to tell.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats import bootstrap_means, looks, mean_interval, mean_p_value
from beaufort.results import open_results


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
    shares = wrong.mean(axis=1)
    start = time.perf_counter()
    mean_interval(shares)
    between = time.perf_counter()
    mean_p_value(shares - 0.4, low=-1, high=1)
    print(f"interval of {images:,} images: {1000 * (between - start):.1f} ms")
    print(f"p-value of {images:,} images: {1000 * (time.perf_counter() - between):.1f} ms")
    print(f"{resamples:,} resamples × {conditions} conditions × {images:,} images")
    print(f"{statistics.median(wall):.2f} s wall, {statistics.median(cpu):.2f} s CPU (median of 3)")
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}")


CASES: tuple[tuple[str, float, float, float], ...] = (
    ("30 % right", 0.3, 2.0, 0.015),
    ("60 % right, all or none", 0.6, 1.0, 0.02),
    ("98 % right, all or none", 0.98, 0.3, 0.005),
    ("99 % right, all or none", 0.99, 0.3, 0.006),
    ("1 % always wrong, a little noise", 0.01, 0.0, 0.005),
    ("0.3 % always wrong, a little noise", 0.003, 0.0, 0.005),
)
"""Name, mean accuracy (or share of photos that are always wrong), how alike versions are, precision."""


def precision(repeats: int) -> None:
    print(f"share of {repeats} simulated 95 % intervals of a mean accuracy at the stop that cover the truth")
    print("| photos | ± points | photos used, mean | covered |")
    print("|---|---:|---:|---:|")
    for name, share, alike, wanted in CASES:
        rng = np.random.default_rng(1)
        hits, used = 0, []
        for _ in range(repeats):
            values, truth = _photos(rng, share, alike)
            for count in looks(len(values)):
                estimate = mean_interval(values[:count])
                if estimate.half_width <= wanted:
                    break
            used.append(count)
            hits += estimate.low <= truth <= estimate.high
        print(f"| {name} | {100 * wanted:g} | {statistics.mean(used):,.0f} | {hits / repeats:.1%} |")


def _photos(
    rng: np.random.Generator, share: float, alike: float, count: int = 12_000
) -> tuple[NDArray[np.float64], float]:
    """The share of its 75 versions that each photo is answered rightly in, and the mean over all photos."""
    if alike:
        return rng.binomial(75, rng.beta(share * alike, (1 - share) * alike, count)) / 75, share
    values = rng.binomial(75, 0.99, count) / 75
    values[rng.random(count) < share] = 0
    return values, 0.99 * (1 - share)


def savings(store: str, orders: int) -> None:
    """Mean accuracy over the corrupted conditions, which every suite has."""
    results = open_results(store)
    print(f"{results.suite} on {results.dataset}: images until the mean accuracy is known to ± points")
    points = (2.0, 1.5, 1.0, 0.75)
    print("| model | images |", *(f"± {p} |" for p in points))
    print("|---|---:|", *("---:|" for _ in points))
    for name in results.models:
        answers = results.predictions(name)
        rows = [row for row, condition in enumerate(answers.conditions) if not condition.clean]
        share = answers.correct[rows].mean(axis=0)
        used: dict[float, list[int]] = {p: [] for p in points}
        for order in range(orders):
            mixed = share[np.random.default_rng(order).permutation(len(share))]
            for count in looks(len(mixed)):
                width = mean_interval(mixed[:count]).half_width
                for p in points:
                    met = width <= p / 100
                    if len(used[p]) == order and (met or count == len(mixed)):
                        used[p].append(count)
        cells = (f"{statistics.mean(used[p]):,.0f} |" for p in points)
        print(f"| {name} | {len(share):,} |", *cells)


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


if __name__ == "__main__":
    main()

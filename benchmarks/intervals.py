"""How long the statistics take, and how many images a precision saves.

    python benchmarks/intervals.py speed
    python benchmarks/intervals.py coverage
    python benchmarks/intervals.py savings STORE

`speed`: 10,000 resamples of 50,000 images under 75 conditions. `coverage`: how often 95 % intervals of
simulated photos cover the truth, at a fixed number of photos and when a precision decides. `savings`: the
stopping rule of `beaufort run --precision`, replayed on the answers of a store in random orders.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from beaufort.results import open_results
from beaufort.stats import Estimate, bootstrap, bootstrap_means, looks, seen_enough


def speed(images: int, conditions: int, resamples: int) -> None:
    wrong = np.random.default_rng(0).random((images, conditions)) < 0.4
    bootstrap_means(wrong[:100], resamples=10)  # compiles
    wall, cpu = [], []
    for seed in range(3):
        start, used = time.perf_counter(), time.process_time()
        bootstrap_means(wrong, resamples=resamples, seed=seed)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    print(f"{resamples:,} resamples × {conditions} conditions × {images:,} images")
    print(f"{statistics.median(wall):.2f} s wall, {statistics.median(cpu):.2f} s CPU (median of 3)")
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}")


def coverage(repeats: int) -> None:
    """Each photo has a difficulty of its own, which all its 75 versions share."""
    print(f"share of {repeats} simulated 95 % intervals of a mean accuracy that cover the truth")
    print(
        "| accuracy | ± points | photos, mean | fixed number | precision decides | without the second rule |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    cases = ((0.3, 2.0, 0.015), (0.6, 1.0, 0.02), (0.95, 1.0, 0.006), (0.98, 0.3, 0.005), (0.99, 0.3, 0.006))
    for mean, alike, precision in cases:
        rng = np.random.default_rng(1)
        hits, used = np.zeros(3), []
        for repeat in range(repeats):
            chance = rng.beta(mean * alike, (1 - mean) * alike, 12_000)
            share = rng.binomial(75, chance) / 75
            stops: dict[bool, Estimate] = {}
            for count in looks(len(share)):
                estimate = _mean(share[:count], repeat)
                if estimate.half_width <= precision:
                    stops.setdefault(False, estimate)
                    if seen_enough(1 - share[:count]):
                        break
            used.append(count)
            found = (_mean(share[-count:], repeat), estimate, stops.get(False, estimate))
            hits += [one.low <= mean <= one.high for one in found]
        fixed, ruled, bare = hits / repeats
        print(
            f"| {mean:.0%} | {100 * precision:g} | {statistics.mean(used):,.0f} "
            f"| {fixed:.1%} | {ruled:.1%} | {bare:.1%} |"
        )


def _mean(share: NDArray[np.float64], seed: int) -> Estimate:
    return bootstrap(share, lambda means: means[..., 0], resamples=500, seed=seed)


def savings(store: str, orders: int) -> None:
    """Mean accuracy over the corrupted conditions, which every suite has."""
    results = open_results(store)
    print(f"{results.suite} on {results.dataset}: images until the mean accuracy is known to ± points")
    points = (2.0, 1.5, 1.0, 0.75)
    print("| model | images |", *(f"± {p} |" for p in points))
    print("|---|---:|", *("---:|" for _ in points))
    for name in results.models:
        answers = results.answers(name)
        rows = [row for row, condition in enumerate(answers.conditions) if not condition.clean]
        share = answers.correct[rows].mean(axis=0)
        used: dict[float, list[int]] = {p: [] for p in points}
        for order in range(orders):
            mixed = share[np.random.default_rng(order).permutation(len(share))]
            for count in looks(len(mixed)):
                width = _mean(mixed[:count], order).half_width
                for p in points:
                    met = width <= p / 100 and seen_enough(1 - mixed[:count])
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
    covered = commands.add_parser("coverage")
    covered.add_argument("--repeats", type=int, default=1000)
    saved = commands.add_parser("savings")
    saved.add_argument("store")
    saved.add_argument("--orders", type=int, default=20)
    given = parser.parse_args()
    if given.command == "speed":
        speed(given.images, given.conditions, given.resamples)
    elif given.command == "coverage":
        coverage(given.repeats)
    else:
        savings(given.store, given.orders)


if __name__ == "__main__":
    main()

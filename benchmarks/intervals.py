"""How long the statistics take, and how many images a precision saves.

    python benchmarks/intervals.py speed
    python benchmarks/intervals.py savings STORE

`speed`: 10,000 resamples of 50,000 images under 75 conditions. `savings`: the stopping rule of
`beaufort run --precision`, replayed on the answers of a store in random orders.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time

import numpy as np

from beaufort.results import open_results
from beaufort.stats import bootstrap, bootstrap_means, looks, seen_enough


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
                width = bootstrap(
                    mixed[:count], lambda means: means[..., 0], resamples=500, seed=order
                ).half_width
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
    saved = commands.add_parser("savings")
    saved.add_argument("store")
    saved.add_argument("--orders", type=int, default=20)
    given = parser.parse_args()
    if given.command == "speed":
        speed(given.images, given.conditions, given.resamples)
    else:
        savings(given.store, given.orders)


if __name__ == "__main__":
    main()

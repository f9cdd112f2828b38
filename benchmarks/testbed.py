"""Time the fits, bands and intervals of a whole grid of the testbed.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks testbed
    python -m benchmarks testbed --grid paper --most 10

Fits every setting that has a standard accuracy, with 1,000 resamples and a band at 200 points, and computes
the 99.5 % interval of every accuracy and the effective robustness of every model with its interval. The exit
code is 1 if all of it takes longer than `--most` seconds of CPU time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from beaufort.testbed import (
    Grid,
    Line,
    accuracy_intervals,
    band,
    coefficient_intervals,
    effective_robustness,
    fit_shift,
    load_grid,
)
from beaufort.testbed.json_values import band_points
from benchmarks.recording import record


def shifts(grid: Grid) -> list[str]:
    return [name for name, one in {**grid.settings, **grid.aggregates}.items() if one.clean]


def fits(grid: Grid) -> int:
    names = shifts(grid)
    for name in names:
        trend = fit_shift(grid, name)
        band(trend, band_points(trend))
        for line in [trend] if isinstance(trend, Line) else [trend.left, trend.right]:
            coefficient_intervals(line)
    return len(names)


def intervals(grid: Grid) -> int:
    values = np.concatenate([grid.column(name) for name in grid.settings])
    images = np.concatenate([grid.images(name) for name in grid.settings])
    accuracy_intervals(values, images)
    return int((~np.isnan(values)).sum())


def robustness(grid: Grid) -> int:
    return sum(len(effective_robustness(grid, name).models) for name in shifts(grid))


def timed(what: str, work: Callable[[Grid], int], grid: Grid) -> float:
    start, used = time.perf_counter(), time.process_time()
    count = work(grid)
    seconds = time.process_time() - used
    record(what, seconds, "s CPU")
    print(f"{time.perf_counter() - start:6.2f} s wall {seconds:6.2f} s CPU  {count:,} {what}")
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--grid", default="latest")
    parser.add_argument("--most", type=float, default=10.0, metavar="SECONDS")
    options = parser.parse_args()
    grid = load_grid(options.grid)
    print(f"{options.grid}: {len(grid.models)} models, {len(grid.settings)} settings")
    total = timed("fits with bands", fits, grid)
    total += timed("intervals of accuracies", intervals, grid)
    total += timed("effective robustness with intervals", robustness, grid)
    record("total", total, "s CPU", f"≤ {options.most:g}")
    print(f"{total:6.2f} s CPU in total (limit {options.most:g} s)")
    return int(total > options.most)

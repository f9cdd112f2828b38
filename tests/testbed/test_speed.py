"""All fits, bands and intervals of the largest grid take seconds."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

from beaufort.testbed import load_grid

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "testbed.py"
MOST_SECONDS = 10
"""Of one core's time."""


def test_the_whole_grid_takes_seconds() -> None:
    spec = importlib.util.spec_from_file_location("benchmark_of_testbed", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    grid = load_grid("latest")
    start = time.process_time()
    assert benchmark.fits(grid) == 206 + 39
    assert benchmark.intervals(grid) == 338 * 213 - 26_220
    assert time.process_time() - start < MOST_SECONDS

"""All fits, bands and intervals of the largest grid take seconds, because NumPy does them array by array."""

from __future__ import annotations

import sys
from collections.abc import Callable

from beaufort.testbed import load_grid
from benchmarks import testbed as benchmark

MOST_CALLS = 2000
"""For one fit with its 1,000 resamples, or for a hundred intervals; more than one for each is too many.

Calls are the same on a machine of any speed; the benchmark measures seconds.
"""


def calls(work: Callable[[], object]) -> int:
    """Count the function calls of the interpreter."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_the_whole_grid_takes_few_calls() -> None:
    grid = load_grid("latest")
    found: list[int] = []
    assert calls(lambda: found.append(benchmark.fits(grid))) < MOST_CALLS * (206 + 39)
    assert calls(lambda: found.append(benchmark.intervals(grid))) < MOST_CALLS * (338 * 213 - 26_220) / 100
    assert found == [206 + 39, 338 * 213 - 26_220]

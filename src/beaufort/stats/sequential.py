"""When to stop: enough images for an interval as narrow as asked for, and not many more.

The rule, fixed before anything is seen: look after `FIRST` images and then each time there are a quarter
more; stop at the first look at which the interval is narrow enough. It stops on the width, never on the
value, and the interval is one that is never narrow by luck (`mean_interval`): where mistakes are so rare
that none was seen, it still reaches as far as the unseen may lie. What peeking costs is shown by simulation,
in the tests and in `benchmarks/intervals.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from beaufort.errors import OptionError

__all__ = ["FIRST", "GROWTH", "looks"]

FIRST = 500
"""Images before the first look."""
GROWTH = 1.25
"""How many times as many there are at the next."""


def looks(count: int) -> Iterator[int]:
    """After how many images to look, the last time at all of them.

    >>> list(looks(1000))
    [500, 625, 782, 978, 1000]
    """
    if count < 1:
        raise OptionError(f"count must be a positive integer, got {count}")
    at = FIRST
    while at < count:
        yield at
        at = math.ceil(at * GROWTH)
    yield count

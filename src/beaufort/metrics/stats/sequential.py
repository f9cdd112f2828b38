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

from beaufort._core.validation import validate_count

FIRST = 500
"""Number of images before the intervals are looked at for the first time."""
GROWTH = 1.25
"""Factor between the numbers of images at one look and the next."""


def looks(count: int) -> Iterator[int]:
    """Numbers of images after which to look at the intervals; the last is all of them.

    >>> list(looks(1000))
    [500, 625, 782, 978, 1000]
    """
    count = validate_count("count", count)
    at = FIRST
    while at < count:
        yield at
        at = math.ceil(at * GROWTH)
    yield count

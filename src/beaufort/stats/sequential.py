"""When to stop: enough images for an interval as narrow as asked for, and not many more.

The rule, fixed before anything is seen: look after `FIRST` images and then each time there are a quarter
more; stop at the first look at which the interval is narrow enough, and at least `MIXED` images were
answered wrongly and as many rightly at least once. It stops on the width, never on the value, and the width
settles long before the value does, except where mistakes are so rare that a lucky beginning has hardly any:
hence the second half of the rule. What peeking costs is shown by simulation, in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from beaufort.errors import OptionError

__all__ = ["FIRST", "GROWTH", "MIXED", "looks", "seen_enough"]

FIRST = 500
"""Images before the first look."""
GROWTH = 1.25
"""How many times as many there are at the next."""
MIXED = 100
"""Images with a wrong answer, and with a right one, before a width is believed."""


def looks(count: int) -> Iterator[int]:
    """After how many images to look, the last time at all of them.

    >>> list(looks(1000))
    [500, 625, 782, 978, 1000]
    """
    if count < 1:
        raise OptionError(f"{count} images came; accepted is a whole number from 1")
    at = FIRST
    while at < count:
        yield at
        at = math.ceil(at * GROWTH)
    yield count


def seen_enough(errors: ArrayLike) -> bool:
    """Whether there are images enough of either kind to believe a width.

    Args:
        errors: the share of its versions that each image was answered wrongly in.

    >>> seen_enough([0.0] * 500), seen_enough([0.2] * 500)
    (False, True)
    """
    wrong = np.asarray(errors)
    return bool(min((wrong > 0).sum(), (wrong < 1).sum()) >= MIXED)

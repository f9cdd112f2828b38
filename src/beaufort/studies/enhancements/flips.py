"""Under which conditions an arm surely differs from its control: McNemar's test for each, and Holm's rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from beaufort.metrics.stats import holm, mcnemar
from beaufort.studies.enhancements.statistics import Shares

_LEVEL = 0.05


@dataclass(frozen=True)
class Flips:
    """Images whose answer changes between right and wrong under a condition; of the first seed."""

    condition: str
    gained: int
    """Right behind the arm only."""
    lost: int
    """Right for the control only."""
    p: float
    """Adjusted for all conditions of the arm."""

    @property
    def verdict(self) -> str:
        """`better`, `worse` or `undecided`."""
        if self.p >= _LEVEL:
            return "undecided"
        return "better" if self.gained > self.lost else "worse"


def find_flips(control: Shares, arm: Shares) -> tuple[Flips, ...]:
    """The flips of every condition that counts: the clean images and the corruptions that mCE is over."""
    if control.right is None or arm.right is None:  # made from numbers other than answers
        return ()
    names = [
        name
        for name in control.conditions
        if name in arm.conditions and name.partition("@")[0] in ("clean", *control.corruptions)
    ]
    before = control.right[[control.conditions.index(name) for name in names]]
    after = arm.right[[arm.conditions.index(name) for name in names]]
    gained, lost = (np.count_nonzero(one, axis=1) for one in (after & ~before, before & ~after))
    p = holm([mcnemar(int(a), int(b)) for a, b in zip(lost, gained, strict=True)])
    return tuple(
        Flips(name, int(a), int(b), float(c)) for name, a, b, c in zip(names, gained, lost, p, strict=True)
    )

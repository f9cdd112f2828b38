"""Verdicts on claims, by one rule for all studies.

A claim is confirmed if all of its comparisons hold, each with its whole 95 % interval: such a conjunction is
wrong in at most 5 % of cases however many comparisons it has. It is refuted if one of the comparisons that
contradict it holds; the more there are, the more likely one holds by chance, so each is tested at 5 % divided
by their number (Bonferroni). A claim that no effect exists is confirmed only by intervals that exclude
effects beyond a margin. A single training run decides nothing, because the spread between runs is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from beaufort.metrics.stats import Estimate

Verdict = Literal["confirmed", "refuted", "undecided"]
LEVEL = 0.95


@dataclass(frozen=True)
class Requirement:
    """A measured number that has to be below or above a bound."""

    estimate: Callable[[float], Estimate] | Estimate
    """The number, or a function that returns it with the interval of a level."""
    sign: str
    """`<` or `>`."""
    bound: float = 0.0
    """The margin; 0 for any difference."""
    runs: int = 2
    """Training runs behind the number; any number above 1 if there is no training."""

    def at(self, level: float = LEVEL) -> Estimate:
        return self.estimate(level) if callable(self.estimate) else self.estimate

    def holds(self, level: float = LEVEL) -> bool:
        """Return whether the whole interval is on one side of the bound."""
        if self.runs < 2:
            return False
        found = self.at(level)
        return found.high < self.bound if self.sign == "<" else found.low > self.bound


def decide(
    confirmed: Sequence[Requirement],
    refuted: Sequence[Requirement],
    *,
    together: bool = False,
    complete: bool = True,
) -> Verdict:
    """Return the verdict on a claim.

    Args:
        confirmed: comparisons that all have to hold for the claim to be confirmed.
        refuted: comparisons of which one has to hold for it to be refuted, corrected for their number.
        together: whether all of `refuted` have to hold instead, which needs no correction.
        complete: whether everything was measured that the claim is about; otherwise it is not confirmed.

    >>> gain = Estimate(-2.0, -3.0, -1.0, 1000)
    >>> decide([Requirement(gain, "<")], [Requirement(gain, ">")])
    'confirmed'
    >>> decide([Requirement(gain, "<", -1.5)], [Requirement(gain, ">", -1.5)])  # at least a gain of 1.5?
    'undecided'
    """
    level = LEVEL if together else 1 - (1 - LEVEL) / max(1, len(refuted))
    held = [one.holds(level) for one in refuted]
    if held and (all(held) if together else any(held)):
        return "refuted"
    return "confirmed" if complete and confirmed and all(one.holds() for one in confirmed) else "undecided"

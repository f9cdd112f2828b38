"""A ranking that says which places are decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from beaufort.errors import OptionError
from beaufort.stats.paired import holm, paired_p_value

__all__ = ["Ranked", "rank"]


@dataclass(frozen=True)
class Ranked:
    """One model's place."""

    name: str
    value: float
    best: int
    """The best place it may have: one more than the models that are surely better."""
    worst: int
    """The worst place it may have: as many as there are, less the models that are surely worse."""
    groups: tuple[str, ...]
    """Letters of the tie groups it is in; two models that share a letter are not told apart."""

    @property
    def place(self) -> str:
        """The places that it may have, as text.

        >>> Ranked("net", 0.5, 2, 4, ("a",)).place
        '2–4'
        """
        return str(self.best) if self.best == self.worst else f"{self.best}–{self.worst}"


def rank(
    names: Sequence[str],
    values: Sequence[float],
    drawn: NDArray[np.float64],
    images: int,
    *,
    better: str = "lower",
    level: float = 0.95,
) -> list[Ranked]:
    """Models from best to worst, with the places and tie groups that the data allow.

    Two models are told apart if their difference is too large for its paired bootstrap standard error,
    after Holm's correction over all pairs.

    Args:
        names: the models.
        values: the metric of each.
        drawn: the metric of each in every resample, `(models, resamples)`; paired, so of the same draws.
        images: base images that the numbers rest on.
        better: `lower` or `higher`.
        level: one less the chance of any false distinction.
    """
    if better not in ("lower", "higher"):
        raise OptionError(f"better={better!r} came; accepted are 'lower' and 'higher'")
    if not len(names) == len(values) == len(drawn):
        raise OptionError(
            f"{len(names)} names, {len(values)} values and {len(drawn)} rows of resamples came; "
            "they must be as many"
        )
    sign = 1 if better == "lower" else -1
    order = sorted(range(len(names)), key=lambda i: (sign * values[i], names[i]))
    apart = _told_apart(np.asarray(values, np.float64)[order], np.asarray(drawn)[order], images, 1 - level)
    letters = _letters(apart)
    return [
        Ranked(
            names[i],
            float(values[i]),
            1 + int(apart[:place, place].sum()),
            len(order) - int(apart[place, place + 1 :].sum()),
            letters[place],
        )
        for place, i in enumerate(order)
    ]


def _told_apart(
    values: NDArray[np.float64], drawn: NDArray[np.float64], images: int, alpha: float
) -> NDArray[np.bool_]:
    """Which pairs differ by more than chance, a symmetric matrix."""
    count = len(values)
    apart = np.zeros((count, count), np.bool_)
    pairs = list(combinations(range(count), 2))
    if pairs:
        p = holm(
            [paired_p_value(values[a] - values[b], np.std(drawn[a] - drawn[b]), images) for a, b in pairs]
        )
        for (a, b), value in zip(pairs, p, strict=True):
            apart[a, b] = apart[b, a] = value < alpha
    return apart


def _letters(apart: NDArray[np.bool_]) -> list[tuple[str, ...]]:
    """The compact letter display: every largest run of neighbors of which no two are told apart."""
    count = len(apart)
    runs: list[range] = []
    for start in range(count):
        stop = start + 1
        while stop < count and not apart[start:stop, stop].any():
            stop += 1
        if not runs or stop > runs[-1].stop:
            runs.append(range(start, stop))
    return [tuple(_letter(g) for g, run in enumerate(runs) if place in run) for place in range(count)]


def _letter(number: int) -> str:
    """a … z, then aa, ab, …"""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text

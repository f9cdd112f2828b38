"""A ranking with the places that are decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ranked:
    """One model's place."""

    name: str
    value: float
    best: int
    """The best possible place: one more than the number of models that are significantly better."""
    worst: int
    """The worst possible place: the number of models minus those that are significantly worse."""
    groups: tuple[str, ...]
    """Letters; two models share a letter exactly if they do not differ significantly."""

    @property
    def place(self) -> str:
        """The possible places as text.

        >>> Ranked("net", 0.5, 2, 4, ("a",)).place
        '2–4'
        """
        return str(self.best) if self.best == self.worst else f"{self.best}–{self.worst}"


def rank(
    names: Sequence[str], values: Sequence[float], apart: NDArray[np.bool_], *, better: str = "lower"
) -> list[Ranked]:
    """Return models from best to worst, with their possible places and letters.

    Args:
        names: the models.
        values: the metric of each.
        apart: which pairs differ significantly, a symmetric matrix in the order of the names.
        better: `lower` or `higher`.

    >>> apart = np.array([[False, False, True], [False, False, False], [True, False, False]])
    >>> [(one.name, one.place, one.groups) for one in rank("xyz", [3.0, 2.0, 1.0], apart)]
    [('z', '1–2', ('a',)), ('y', '1–3', ('a', 'b')), ('x', '2–3', ('b',))]
    """
    sign = 1 if better == "lower" else -1
    order = sorted(range(len(names)), key=lambda i: (sign * values[i], names[i]))
    matrix = np.asarray(apart, np.bool_)[np.ix_(order, order)]
    displayed = letters(matrix)
    return [
        Ranked(
            names[i],
            float(values[i]),
            1 + int(matrix[:place, place].sum()),
            len(order) - int(matrix[place, place + 1 :].sum()),
            displayed[place],
        )
        for place, i in enumerate(order)
    ]


def letters(apart: NDArray[np.bool_]) -> list[tuple[str, ...]]:
    """Return the letters of each model: two share one exactly if they do not differ significantly.

    Every letter is a group without significant differences. A pair that shares no letter yet starts a group,
    to which all others that fit are added in order.

    >>> letters(np.array([[False, True, False], [True, False, False], [False, False, False]]))
    [('a',), ('b',), ('a', 'b')]
    """
    count = len(apart)
    covered = apart.copy()
    groups: list[list[int]] = []
    for first, second in combinations(range(count), 2):
        if not covered[first, second]:
            group = _group(apart, first, second)
            covered[np.ix_(group, group)] = True
            groups.append(group)
    groups += [[model] for model in range(count) if not any(model in group for group in groups)]
    groups.sort()
    return [tuple(_letter(g) for g, group in enumerate(groups) if model in group) for model in range(count)]


def _group(apart: NDArray[np.bool_], first: int, second: int) -> list[int]:
    members = [first, second]
    for other in range(len(apart)):
        if other not in members and not apart[other, members].any():
            members.append(other)
    return sorted(members)


def _letter(number: int) -> str:
    """a … z, then aa, ab, …"""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text

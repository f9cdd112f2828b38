"""Differences between networks, with an interval over icons and training runs, and the paper's claims."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from beaufort.studies.icons_50.icon_networks import NETWORKS, SPLITS, VARIANTS
from beaufort.studies.icons_50.icon_tables import IconResults
from beaufort.studies.paper_tables import Claim, measured


@dataclass(frozen=True)
class Effect:
    """How much higher one accuracy is than another on the same icons."""

    name: str
    split: str
    first: str
    second: str
    value: float
    low: float
    high: float
    """The interval (95 %) over icons and over the trainings of whichever has several."""
    trainings: tuple[int, int]

    @property
    def points(self) -> str:
        return f"{100 * self.value:+.1f} points [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"

    @property
    def decided(self) -> bool | None:
        """Whether the difference is above 0; None if it is not decided.

        With one training of either it never is: how far another one would come out is not known.
        """
        if min(self.trainings) < 2 or self.low <= 0 <= self.high:
            return None
        return self.low > 0


def difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[float, float, float]:
    """The difference of two means and its interval, of arrays `(trainings, icons)` over the same icons.

    Icons are paired, trainings are not. The variances of both add up; the quantile is that of Student's t
    with the degrees of freedom of Welch and Satterthwaite.

    >>> ones, halves = np.ones((2, 8)), np.tile([0.0, 1.0], (2, 4))
    >>> [round(value, 2) for value in difference(ones, halves)]
    [0.5, 0.05, 0.95]
    """
    paired = first.mean(axis=0) - second.mean(axis=0)
    parts = [(paired.var(ddof=1) / len(paired), len(paired) - 1)]
    for rows in (first, second):
        if len(rows) > 1:
            parts.append((rows.mean(axis=1).var(ddof=1) / len(rows), len(rows) - 1))
    variance = sum(part for part, _ in parts)
    value = float(paired.mean())
    if variance == 0:  # no icon differs from another: at most one in 3/n would, with 95 % confidence
        width = 3 / len(paired)
        return value, max(-1.0, value - width), min(1.0, value + width)
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    width = float(special.stdtrit(freedom, 0.975)) * math.sqrt(variance)
    return value, max(-1.0, value - width), min(1.0, value + width)


_COMPARED = (
    ("Shake-Shake's network not shaken, 50 epochs", "still26-32d-50", "resnext29"),
    ("shaking, 50 epochs", "shake26-32d-50", "still26-32d-50"),
    ("shaking, 200 epochs", "shake26-32d-200", "still26-32d-200"),
    ("200 epochs for 50, not shaken", "still26-32d-200", "still26-32d-50"),
    ("200 epochs for 50, shaken", "shake26-32d-200", "shake26-32d-50"),
    ("the paper's pair", "shake26-96d", "resnext29"),
    ("the paper's pair at 50 epochs", "shake26-96d-50", "resnext29"),
    ("500 epochs for 50, 2×96d", "shake26-96d", "shake26-96d-50"),
)


def effects(results: IconResults) -> list[Effect]:
    """The comparisons that answer the question about Shake-Shake, as far as both sides are there."""
    return [
        effect
        for name, first, second in _COMPARED
        for split in ("style", "subtype")
        if (effect := _effect(results, name, split, first, second)) is not None
    ]


def _effect(results: IconResults, name: str, split: str, first: str, second: str) -> Effect | None:
    a, b = results.correct(first, split), results.correct(second, split)
    if a is None or b is None:
        return None
    titles = VARIANTS[first].title, VARIANTS[second].title
    return Effect(name, SPLITS[split], *titles, *difference(a, b), (len(a), len(b)))


def claims(results: IconResults, found: list[Effect]) -> list[Claim]:
    """Return the claims that the predictions which are there can decide."""
    # MSDNet is the best of the paper's networks without Shake-Shake when a style is new
    multiscale = [
        _effect(results, "multiscale features", "style", "msdnet", name)
        for name in ("resnet20", "densenet40", "resnext29")
    ]
    return [
        *map(_of_effect, found),
        *(one for name in NETWORKS for one in _about_rules(results, name)),
        *(_of_effect(one) for one in multiscale if one is not None),
    ]


def _of_effect(one: Effect) -> Claim:
    return Claim(
        f"{one.name}: {one.first} is above {one.second} on {one.split}",
        f"{one.points}, {_trainings(*one.trainings)}",
        one.decided,
    )


def _about_rules(results: IconResults, name: str) -> list[Claim]:
    """A new surface is harder than a new rendition, so the amount of data is not what is missing."""
    found = []
    easy = results.correct(name, "traditional")
    for split in ("style", "subtype"):
        hard = results.correct(name, split)
        if easy is None or hard is None:
            continue
        first, second = measured(easy, None), measured(hard, None)
        least, most = first.lowest - second.highest, first.highest - second.lowest
        decided = True if least > 0.1 else False if most < 0.1 else None
        found.append(
            Claim(
                f"{VARIANTS[name].title} is more than 10 points better on {SPLITS['traditional']} than on "
                f"{SPLITS[split]}",
                f"{100 * first.value:.1f} and {100 * second.value:.1f}: {100 * least:+.1f} to "
                f"{100 * most:+.1f} points apart by the trainings' own intervals, "
                f"{_trainings(len(easy), len(hard))}",
                decided if min(len(easy), len(hard)) > 1 else None,
            )
        )
    return found


def _trainings(first: int, second: int) -> str:
    if first == second == 1:
        return "one training of each"
    return f"{first} trainings of each" if first == second else f"{first} and {second} trainings"

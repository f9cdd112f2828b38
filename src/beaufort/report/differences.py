"""Differences between models for the page: headline numbers, and errors under each corruption."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from beaufort.metrics.stats import Estimate
from beaufort.results import Scores

MOST_COMPARED = 12
"""Models up to which every pair is compared: each difference takes about a millisecond."""


class PairDifferences(NamedTuple):
    """The second model less the first, each with an interval that decides."""

    metrics: tuple[Estimate, ...]
    """In the order of the headline numbers; intervals adjusted for all pairs and numbers."""
    corruptions: tuple[Estimate, ...]
    """Errors, in the order of the suite; intervals adjusted for all pairs and corruptions."""


def pair_differences(scores: Scores) -> dict[tuple[int, int], PairDifferences]:
    """By the places of two models in the scores; empty if there are too many to compare all."""
    if not 1 < len(scores.models) <= MOST_COMPARED:
        return {}
    pairs = list(combinations(range(len(scores.models)), 2))
    family = len(pairs) * len(scores.suite.corruptions)
    level = 1 - (1 - scores.level) / max(family, 1)
    found = {}
    for a, b in pairs:
        first, second = scores.models[a], scores.models[b]
        found[a, b] = PairDifferences(
            tuple(
                scores.pairs.difference(metric, first.model, second.model).difference
                for metric in first.metrics
            ),
            tuple(
                (second.error_forms[name] - first.error_forms[name]).estimate(level)
                for name in scores.suite.corruptions
            ),
        )
    return found

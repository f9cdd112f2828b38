"""Consistency over frames of a video: an anchor counts as right if every frame of its set is.

`pm-k` is the share of anchors that are answered rightly together with every neighbour at most `k` frames
away: the worst frame decides. It is made from stored answers, for any `k`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from beaufort.data import FrameSets
from beaufort.metrics.stats import Estimate, clopper_pearson
from beaufort.results._match import ResultsError
from beaufort.results.results import Results


@dataclass(frozen=True)
class PmScore:
    """One model at one distance."""

    model: str
    k: int
    """Frames on each side of the anchor."""
    accuracy: Estimate
    """Share of the anchors; `n` is their number."""


def pm_scores(
    results: Results, sets: FrameSets, ks: Sequence[int] = (0, 10), *, level: float = 0.95
) -> tuple[PmScore, ...]:
    """The accuracy of each model on anchors and on whole sets of frames.

    Args:
        results: answers to all frames of the sets, of which the clean ones count.
        sets: which frames belong together.
        ks: how far from the anchor frames count.
        level: of the intervals.
    """
    if wrong := [k for k in ks if type(k) is not int or k < 0]:
        raise ResultsError(f"k must be a whole number from 0, got {wrong[0]!r}")
    return tuple(score for model in results.models for score in _of_model(results, model, sets, ks, level))


def _of_model(
    results: Results, model: str, sets: FrameSets, ks: Sequence[int], level: float
) -> list[PmScore]:
    answers = results.predictions(model)
    if None not in answers.rows:
        raise ResultsError(f"{results.suite} has no clean images; frames are compared as they are")
    right = dict(zip(answers.ids, answers.correct[answers.rows[None][0]].tolist(), strict=True))
    farthest = max(ks, default=0)
    for anchor in sets.neighbours:
        if lost := [frame for frame in sets.within(anchor, farthest) if frame not in right]:
            raise ResultsError(
                f"pm-{farthest} needs an answer to every frame, got none of {model} to {lost[0]!r}; evaluate "
                "all frames of the sets"
            )
    found = []
    for k in ks:
        hits = sum(all(right[frame] for frame in sets.within(anchor, k)) for anchor in sets.neighbours)
        found.append(PmScore(model, k, clopper_pearson(hits, len(sets.neighbours), level)))
    return found

"""Consistency over frames of a video: an anchor counts as correct if every frame of its set is.

`pm-k` is the fraction of anchors that are classified correctly together with every neighbor at most `k`
frames away: the worst frame decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from beaufort._core.validation import validate_integer
from beaufort.data import FrameSets
from beaufort.metrics.stats import Estimate, clopper_pearson
from beaufort.results._match import ResultsError
from beaufort.results.predictions import Predictions
from beaufort.results.results import Results


@dataclass(frozen=True)
class PmScore:
    """The result of one model at one distance."""

    model: str
    k: int
    """Number of frames on each side of the anchor."""
    accuracy: Estimate
    """Fraction of the anchors; `n` is their number."""


def pm_scores(
    results: Results,
    sets: FrameSets,
    ks: Sequence[int] = (0, 10),
    *,
    models: Sequence[str] | None = None,
    level: float = 0.95,
) -> tuple[PmScore, ...]:
    """Return the accuracy of each model on anchors and on whole sets of frames.

    Args:
        results: predictions for all frames of the sets, of which the clean ones count.
        sets: which frames belong together. If anchors have the labels of their neighbors, a frame of two
            anchors is judged by the labels of each.
        ks: how far from the anchor frames count.
        models: models to score; all by default.
        level: of the intervals.
    """
    farthest = max((validate_integer("k", k, 0) for k in ks), default=0)
    found = []
    for model in results.models if models is None else models:
        predictions = results.predictions(model)
        if None not in predictions.rows:
            raise ResultsError(f"{results.suite} has no clean images, which pm-k requires")
        row = predictions.rows[None][0]
        correct = dict(zip(predictions.ids, predictions.correct[row].tolist(), strict=True))
        for anchor in sets.neighbors:
            if lost := [frame for frame in sets.within(anchor, farthest) if frame not in correct]:
                raise ResultsError(
                    f"{model} has no prediction for the frame {lost[0]!r}; pm-{farthest} requires all frames "
                    "of the sets"
                )
        if results.suite.labels == "ytbb-robust" or sets.labels_of_anchors:
            judged = _judged_by_anchor(predictions, row)
        else:
            judged = partial(_judged_by_frame, correct)
        for k in ks:
            hits = sum(all(judged(one, frame) for frame in sets.within(one, k)) for one in sets.neighbors)
            found.append(PmScore(model, k, clopper_pearson(hits, len(sets.neighbors), level)))
    return tuple(found)


def _judged_by_frame(correct: Mapping[str, bool], anchor: str, frame: str) -> bool:
    return correct[frame]


def _judged_by_anchor(predictions: Predictions, row: int) -> Callable[[str, str], bool]:
    """Return a function that judges a frame by the labels of an anchor; a frame may have several anchors."""
    place = {frame: number for number, frame in enumerate(predictions.ids)}
    first, label_sets = predictions.top[row, :, 0], predictions.label_sets
    labels = predictions.labels[:, None] if label_sets is None else label_sets

    def judged(anchor: str, frame: str) -> bool:
        return bool(np.isin(first[place[frame]], labels[place[anchor]]))

    return judged

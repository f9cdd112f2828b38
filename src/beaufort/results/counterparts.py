"""Accuracy on each dataset of a suite, on its clean counterpart, and the drop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from beaufort.metrics.stats import Estimate, newcombe
from beaufort.results.linear import Linear, find_clusters
from beaufort.results.metric_forms import columns_of, image_errors
from beaufort.results.predictions import SharedPredictions
from beaufort.results.scores import ModelScores, Scores


@dataclass(frozen=True)
class ShiftScore:
    """One model on one dataset of a suite."""

    part: str
    """Name of the dataset in a suite of several; else its own."""
    shifts: tuple[str, ...]
    """Shifts of its images; empty if the dataset itself is the shift."""
    model: str
    accuracy: Estimate
    """Accuracy on the shifted images, the mean over shifts; on the images themselves without shifts."""
    clean: Estimate | None
    """Accuracy on the clean counterpart; None if there is none."""
    counterpart: str | None
    """Name of the clean counterpart."""
    drop: Estimate | None
    """Clean accuracy minus the accuracy under the shift."""
    paired: bool
    """Whether both are on the same images; if not, the interval of the drop is Newcombe's."""
    labels: str
    """Label space and convention, in words."""


def shift_scores(
    scores: Sequence[Scores], clusters: Mapping[str, str] | None = None
) -> tuple[ShiftScore, ...]:
    """Return the accuracy of every model on every dataset, with that on its clean counterpart.

    Args:
        scores: one for each part of a suite.
        clusters: as for `score`.
    """
    clean = {(one.suite.name, model.model): model.clean for one in scores for model in one.models}
    return tuple(
        _row(one, model, clean, clusters)
        for one in scores
        for model in sorted(one.models, key=lambda model: model.model)
    )


def _row(
    scores: Scores,
    model: ModelScores,
    clean_scores: Mapping[tuple[str, str], Estimate | None],
    clusters: Mapping[str, str] | None,
) -> ShiftScore:
    suite, results, name = scores.suite, scores.results, model.model
    part = suite.name if results.part_of else results.dataset
    accuracy, drop = model.clean, None
    if suite.families:
        accuracy, drop = _within(scores, name, clusters)
    assert accuracy is not None
    paired = bool(suite.families) and suite.counterpart is None
    if paired:
        clean, counterpart = model.clean, None if model.clean is None else part
    else:
        clean, counterpart = clean_scores.get((suite.counterpart or "", name)), suite.counterpart
        drop = None if clean is None else newcombe(clean, accuracy)
    labels = str(results.space(name))
    return ShiftScore(part, suite.families, name, accuracy, clean, counterpart, drop, paired, labels)


def _within(
    scores: Scores, model: str, clusters: Mapping[str, str] | None
) -> tuple[Estimate, Estimate | None]:
    """Return the mean accuracy under the shifts, and the drop on the same images if there are clean ones."""
    columns = columns_of(scores.suite)
    predictions = SharedPredictions(scores.results, [one.model for one in scores.models])[model]
    errors = image_errors(predictions, columns)
    units = find_clusters(predictions.ids, clusters)
    shifted = np.array([column is not None for column in columns], np.float64)
    shifted /= shifted.sum()
    clean = np.array([column is None for column in columns], np.float64)

    def estimate(constant: float, weights: np.ndarray) -> Estimate:
        return Linear.of(constant, {model: (errors, weights)}).clustered(units).estimate(scores.level)

    return estimate(1.0, -shifted), estimate(0.0, shifted - clean) if clean.any() else None

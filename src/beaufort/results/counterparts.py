"""Each data set of a suite beside its clean counterpart: accuracy, clean accuracy, and what is lost."""

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
    """One model on one data set of a suite."""

    part: str
    """The data set, by its name in a suite of several; else by its own."""
    shifts: tuple[str, ...]
    """What was done to its images; nothing for a data set that is a shift by itself."""
    model: str
    accuracy: Estimate
    """On the shifted images, the mean over shifts; on the images themselves if nothing was done to them."""
    clean: Estimate | None
    """On the clean counterpart; None if there is none."""
    counterpart: str | None
    """The data set that is the clean counterpart."""
    drop: Estimate | None
    """What is lost: the clean accuracy less the other."""
    paired: bool
    """Whether both are on the same images; if not, the interval of the drop is Newcombe's."""
    labels: str
    """What counts as which class, and what competes, in words."""


def shift_scores(
    scores: Sequence[Scores], clusters: Mapping[str, str] | None = None
) -> tuple[ShiftScore, ...]:
    """Every model on every data set, each with the clean condition that belongs to it.

    Args:
        scores: one for each part of a suite.
        clusters: as for `score`.
    """
    by_part = {one.suite.name: one for one in scores}
    return tuple(
        _row(one, model, by_part, clusters)
        for one in scores
        for model in sorted(one.models, key=lambda model: model.model)
    )


def _row(
    scores: Scores,
    model: ModelScores,
    by_part: Mapping[str, Scores],
    clusters: Mapping[str, str] | None,
) -> ShiftScore:
    suite = scores.suite
    part = suite.name if scores.results.part_of else scores.results.dataset
    words = str(scores.results.space(model.model))
    if suite.families:
        accuracy, drop = _within(scores, model.model, clusters)
        if suite.counterpart is None:
            own = None if model.clean is None else part
            return ShiftScore(
                part, suite.families, model.model, accuracy, model.clean, own, drop, True, words
            )
    else:
        assert model.clean is not None
        accuracy = model.clean
    clean = _counterpart(suite.counterpart, model.model, by_part)
    drop = None if clean is None else newcombe(clean, accuracy)
    return ShiftScore(
        part, suite.families, model.model, accuracy, clean, suite.counterpart, drop, False, words
    )


def _counterpart(name: str | None, model: str, by_part: Mapping[str, Scores]) -> Estimate | None:
    if name is None or name not in by_part:
        return None
    return next((one.clean for one in by_part[name].models if one.model == model), None)


def _within(
    scores: Scores, model: str, clusters: Mapping[str, str] | None
) -> tuple[Estimate, Estimate | None]:
    """The mean accuracy under the shifts, and what is lost on the same images if clean ones are there."""
    columns = columns_of(scores.suite)
    predictions = SharedPredictions(scores.results, [one.model for one in scores.models])[model]
    errors = image_errors(predictions, columns)
    shifted = np.array([column is not None for column in columns], np.float64)
    shifted /= shifted.sum()
    clean = np.array([column is None for column in columns], np.float64)
    forms = [Linear.of(1.0, {model: (errors, -shifted)})]
    if clean.any():
        forms.append(Linear.of(0.0, {model: (errors, shifted - clean)}))
    units = find_clusters(predictions.ids, clusters)
    found = [form.clustered(units).estimate(scores.level) for form in forms]
    return found[0], found[1] if len(found) > 1 else None

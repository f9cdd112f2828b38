"""Replies of chat models: how often there is no prediction, and how the position of names matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beaufort.metrics.stats import Estimate, mean_interval
from beaufort.models.chat import HALVES, OUTCOMES, OUTPUTS
from beaufort.results.calibration import calibration_rows
from beaufort.results.predictions import Predictions, SharedPredictions
from beaufort.results.results import Results


@dataclass(frozen=True)
class ReplyScores:
    """Replies of one chat model on clean images, or at one severity with all corruptions together."""

    model: str
    group: str
    """`clean`, a severity, or `corrupted`."""
    outcomes: Mapping[str, Estimate]
    """Fraction of predictions with each of `beaufort.models.chat.OUTCOMES`."""
    position_bias: Estimate | None
    """Fraction of choices from the first half of the names minus that from the second half; 0 without a
    bias, because the order is random. None if names are not listed, or in a fixed order."""
    level: float = 0.95

    @property
    def title(self) -> str:
        """The group in words."""
        return self.group if self.group in ("clean", "corrupted") else f"severity {self.group}"


def score_replies(
    results: Results, models: Sequence[str] | None = None, *, level: float = 0.95
) -> tuple[ReplyScores, ...]:
    """Return the outcomes of the replies of chat models on the same images; empty if there are none.

    Replies without a prediction count as errors in all metrics. Intervals are over images.
    """
    names = list(results.models if models is None else models)
    chat = [name for name in names if results.space(name).outcomes]
    if not chat:
        return ()
    shared = SharedPredictions(results, names)
    return tuple(
        ReplyScores(name, group, *_scores(shared[name], rows, _first_outcome(results, name), level), level)
        for name in chat
        for group, rows in calibration_rows(shared[name]).items()
    )


def output_name(results: Results, label: int) -> str | None:
    """Return the name of an output of chat models after the classes; None for classes and other models."""
    for name in results.models:
        if results.space(name).outcomes and label >= (first := _first_outcome(results, name)):
            return OUTPUTS[label - first]
    return None


def _first_outcome(results: Results, model: str) -> int:
    columns = results.space(model).class_columns
    assert columns is not None
    return columns


def _scores(
    predictions: Predictions, rows: Sequence[int], first: int, level: float
) -> tuple[dict[str, Estimate], Estimate | None]:
    top = predictions.top[rows]
    outcomes = {
        name: mean_interval((top[..., 0] == first + place).mean(axis=0), level=level)
        for place, name in enumerate(OUTCOMES)
    }
    marks = first + len(OUTCOMES)
    halves = [(top == marks + place).any(axis=2) for place in range(len(HALVES))]
    usable = np.logical_or.reduce(halves) & ((top[..., 0] < first) | (top[..., 0] == marks - 1))
    images = usable.any(axis=0)
    if not images.any():
        return outcomes, None
    signed: NDArray[np.float64] = np.where(usable, halves[0].astype(float) - halves[1], 0.0).sum(axis=0)
    means = signed[images] / usable.sum(axis=0)[images]
    return outcomes, mean_interval(means, low=-1.0, high=1.0, level=level)

"""The answers that scores rest on."""

from __future__ import annotations

from beaufort.results import Scores, SharedPredictions


def scored_answers(scores: Scores) -> SharedPredictions:
    """Models, in the order of the ranking, with their answers to the images that all of them have."""
    baseline = scores.baseline
    stored = [baseline.name] if baseline and baseline.stored else []
    return SharedPredictions(scores.results, [one.model for one in scores.models], also=stored)

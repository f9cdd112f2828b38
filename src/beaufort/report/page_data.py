"""The numbers that the page draws, as JSON.

They are not rounded: rounded here and again on the page, some would differ from the same number in a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from beaufort.corruptions import corruptions
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.report.examples import Examples, Prediction
from beaufort.report.figure_numbers import (
    MOST_COMPARED,
    WorstClass,
    WorstClasses,
    baseline_errors,
    breaking_points,
    mean_curves,
    pair_differences,
)
from beaufort.report.headline import headline
from beaufort.report.wording import class_name, class_names_of, words
from beaufort.results import BINS, Calibration, Scores, output_name


def page_data(scores: Scores, worst: WorstClasses, examples: Examples | None) -> dict[str, Any]:
    """Return the data that `page.js` reads."""
    suite, baseline = scores.suite, scores.baseline
    curves = mean_curves(scores)
    classes = (examples.classes if examples else ()) or class_names_of(scores)
    used: set[int] = set()
    data: dict[str, Any] = {
        "n": scores.images,
        "level": scores.level,
        "severities": [] if suite.severities == "published" else list(suite.severities),
        "corruptions": [words(name) for name in suite.corruptions],
        "groups": [corruptions[name].group for name in suite.corruptions],
        "clean": suite.clean,
        "headline": scores.headline,
        "metrics": [
            {"name": name, "title": scores.metric_title(name), "better": metrics[name].better}
            for name in scores.models[0].metrics
        ],
        "baseline": None if baseline is None else baseline.short_name,
        "baselineErrors": [list(row) for row in baseline_errors(scores).values()],
        "bins": BINS,
        "models": [
            _model(scores, place, curves.get(one.model, []), worst.by_model.get(one.model, ()), used)
            for place, one in enumerate(scores.models)
        ],
        "mostCompared": MOST_COMPARED,
        "pairs": {
            f"{a},{b}": {"metrics": _triples(one.metrics), "corruptions": _triples(one.corruptions)}
            for (a, b), one in pair_differences(scores).items()
        },
    }
    if examples is not None:
        data["examples"] = _examples(examples, used)
    results = scores.results
    mapped = any(not results.space(one.model).identity for one in scores.models)  # then others have no number
    data["classes"] = {
        str(label): output_name(results, label)
        or ("another class" if mapped and label >= len(classes) else class_name(classes, label))
        for label in sorted(used)
    }
    return data


def _model(
    scores: Scores, place: int, curve: list[Estimate], classes: Sequence[WorstClass], used: set[int]
) -> dict[str, Any]:
    model, ranked = scores.models[place], scores.ranking[place]
    said = headline(scores, model)
    used.update(one.label for one in classes)
    return {
        "name": model.model,
        "place": ranked.place,
        "letters": list(ranked.groups),
        "sentence": said.sentence,
        "standing": said.standing,
        "meaning": said.meaning,
        "metrics": _triples(model.metrics.values()),
        "tiles": [[tile.title, tile.value, tile.note] for tile in said.tiles],
        "clean": _triple(model.clean),
        "accuracy": _triples(value for condition, value in model.conditions.items() if not condition.clean),
        "error": _triples(model.corruptions.values()),
        "breaks": list(points.values()) if (points := breaking_points(model)) else None,
        "ce": _triples(model.ce.values()),
        "curve": _triples(curve),
        "calibration": {name: _calibration(one) for name, one in model.calibration.items()},
        "classes": [[one.label, one.n, _triple(one.corrupted), _triple(one.clean)] for one in classes],
    }


_CALIBRATION = ("ece", "confidence", "accuracy", "nll", "brier", "entropy")


def _calibration(one: Calibration) -> dict[str, Any]:
    return {
        **{name: _triple(getattr(one, name)) for name in _CALIBRATION},
        "raw": one.raw_ece,
        "floor": one.floor,
        "counts": list(one.counts),
        "binConfidence": list(one.bin_confidence),
        "binAccuracy": list(one.bin_accuracy),
    }


def _examples(examples: Examples, used: set[int]) -> dict[str, Any]:
    def pair(one: Prediction) -> list[float]:
        used.add(one.label)
        return [one.label, one.confidence]

    strips = []
    for strip in examples.strips:
        used.update([] if strip.label is None else [strip.label])
        strips.append(
            {
                "name": strip.name,
                "label": strip.label,
                "images": strip.images,
                "by": list(strip.predictions),
                "predictions": [[pair(one) for one in row] for row in strip.predictions.values()],
            }
        )
    mistakes: dict[str, list[list[Any]]] | None = None
    if examples.mistakes is not None:
        mistakes = {}
        for name, found in examples.mistakes.items():
            for one in found:
                used.update(label for label in (one.clean, one.label) if label is not None)
            mistakes[name] = [
                [words(one.corruption), one.severity, one.image, one.clean, *pair(one.prediction), one.label]
                for one in found
            ]
    return {
        "images": examples.images,
        "strips": strips,
        "mistakesBy": None if mistakes is None else list(mistakes),
        "mistakes": None if mistakes is None else list(mistakes.values()),
    }


def _triple(estimate: Estimate | None) -> list[float] | None:
    return None if estimate is None else [estimate.value, estimate.low, estimate.high]


def _triples(estimates: Iterable[Estimate]) -> list[list[float] | None]:
    return [_triple(one) for one in estimates]

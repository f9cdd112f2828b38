"""Results that papers print, in the measure and the columns of a table of one's own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from beaufort._core.errors import OptionError
from beaufort.metrics import get_baseline, published_table
from beaufort.results import ResultBaseline, Scores
from beaufort.suites import get_suite

_ACCURACIES = {"mnist-c": "mnist-c-figure3"}
"""By suite, the printed table of accuracies under each corruption."""

_RATIOS = {"imagenet-c": "imagenet-c-table1"}
"""By suite, the printed table of CE, of which mCE is the mean."""

_CLASSES = {"imagenet-c": "alexnet", "mnist-c": "conv1"}
"""By suite, the published baseline, which knows how many classes the networks chose from."""


def published_errors(scores: Scores, measure: str) -> dict[str, Mapping[str, float]]:
    """By network: its clean error under `clean`, and its error, or its CE, under each corruption.

    ImageNet-C's paper prints CE for all networks, and errors only for AlexNet.
    """
    suite = scores.suite
    _check(scores)
    if measure == "ce":
        if suite.name not in _RATIOS:
            raise OptionError(
                f"published results of {suite.name} are accuracies, got measure 'ce'; use error or accuracy"
            )
        if scores.baseline is None or not scores.baseline.name.startswith(_CLASSES[suite.name]):
            raise OptionError(
                f"published results of {suite.name} are relative to {_CLASSES[suite.name]}, got another "
                f"baseline; use --baseline {_CLASSES[suite.name]}, or the measure error"
            )
        table = published_table(_RATIOS[suite.name])
        return {network: _renamed(table[network]) for network in table}
    if suite.name in _ACCURACIES:
        table = published_table(_ACCURACIES[suite.name])
        return {network: {key: 1 - value for key, value in table[network].items()} for network in table}
    baseline = get_baseline(_CLASSES[suite.name])
    severities = None if suite.severities == "published" else suite.severities
    found = baseline.select(suite.corruptions, severities)
    errors = {name: float(np.mean(np.asarray(values, np.float64))) for name, values in found.items()}
    clean = {} if baseline.clean is None else {"clean": baseline.clean}
    named = ResultBaseline(baseline.name, baseline.title, baseline.source, errors=errors).short_name
    return {named: {**clean, **errors}}


def published_source(scores: Scores, measure: str) -> str:
    """Where the published results are from."""
    name = scores.suite.name
    if measure == "ce":
        return published_table(_RATIOS[name]).source
    if name in _ACCURACIES:
        return published_table(_ACCURACIES[name]).source
    return get_baseline(_CLASSES[name]).source


def _check(scores: Scores) -> None:
    """Published results stand beside results of the same suite on as many classes."""
    suite = scores.suite
    if suite.name not in _CLASSES:
        raise OptionError(
            f"published results are there for {' and '.join(_CLASSES)}, got the suite {suite.name!r}"
        )
    own = get_suite(suite.name)
    if (suite.corruptions, suite.severities) != (own.corruptions, own.severities):
        raise OptionError(
            f"published results of {suite.name} are about other conditions than this suite of that name"
        )
    classes, given = get_baseline(_CLASSES[suite.name]).classes, scores.results.class_count
    if classes is not None and given not in {None, classes}:
        raise OptionError(
            f"published results of {suite.name} are results among {classes:,} classes, and "
            f"{scores.results.dataset} has {given:,}"
        )


def _renamed(row: Mapping[str, float]) -> dict[str, float]:
    return {"clean" if key == "clean_error" else key: value for key, value in row.items()}

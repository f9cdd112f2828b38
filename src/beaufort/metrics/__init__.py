"""Metrics as pure functions of arrays, their published values, and statistics: intervals and tests.

Proportions are in [0, 1]. No metric returns 0 or NaN for "no data". Classes for training loops are in
`beaufort.metrics.torch`, which must be imported explicitly.
"""

from __future__ import annotations

from beaufort.metrics._checks import MetricError, MissingResultsError, Value
from beaufort.metrics._metric import Metric, metric, metrics
from beaufort.metrics.abstention import (
    RiskCoverage,
    accuracy_at_coverage,
    area_under_risk_coverage,
    risk_coverage,
)
from beaufort.metrics.adaptation import collapse_position, stream_mean
from beaufort.metrics.baselines import BASELINE_NAMES, Baseline, get_baseline
from beaufort.metrics.calibration import (
    CalibrationBins,
    calibration_bins,
    confidence_bin,
    ece_from_bins,
    expected_calibration_error,
    fit_temperature,
)
from beaufort.metrics.classification import (
    ClassAccuracy,
    accuracy,
    error,
    per_class_accuracy,
    worst_classes,
)
from beaufort.metrics.conformal import (
    CONFORMAL_METHODS,
    conformal_scores,
    conformal_sets,
    conformal_threshold,
)
from beaufort.metrics.corruption import (
    Errors,
    corruption_error,
    mean_accuracy,
    mean_corruption_error,
    mean_error,
    relative_corruption_error,
    relative_mean_corruption_error,
)
from beaufort.metrics.probability import brier_score, entropy, negative_log_likelihood
from beaufort.metrics.published import TABLE_NAMES, PublishedTable, published_table
from beaufort.metrics.stability import (
    flip_probability,
    flips,
    mean_flip_rate,
    top5_distance,
    top5_distances,
)

__all__ = [
    "BASELINE_NAMES",
    "CONFORMAL_METHODS",
    "TABLE_NAMES",
    "Baseline",
    "CalibrationBins",
    "ClassAccuracy",
    "Errors",
    "Metric",
    "MetricError",
    "MissingResultsError",
    "PublishedTable",
    "RiskCoverage",
    "Value",
    "accuracy",
    "accuracy_at_coverage",
    "area_under_risk_coverage",
    "brier_score",
    "calibration_bins",
    "collapse_position",
    "confidence_bin",
    "conformal_scores",
    "conformal_sets",
    "conformal_threshold",
    "corruption_error",
    "ece_from_bins",
    "entropy",
    "error",
    "expected_calibration_error",
    "fit_temperature",
    "flip_probability",
    "flips",
    "get_baseline",
    "mean_accuracy",
    "mean_corruption_error",
    "mean_error",
    "mean_flip_rate",
    "metric",
    "metrics",
    "negative_log_likelihood",
    "per_class_accuracy",
    "published_table",
    "relative_corruption_error",
    "relative_mean_corruption_error",
    "risk_coverage",
    "stream_mean",
    "top5_distance",
    "top5_distances",
    "worst_classes",
]

"""The ImageNet testbed: effective and relative robustness under natural distribution shifts.

Accuracies here are percentages and robustness is in percentage points, as in the paper (Taori et al., 2020).
"""

from __future__ import annotations

from beaufort.testbed.agreement import AgreementLine, EstimatedAccuracy, agreement_lines
from beaufort.testbed.correlation import Correlation, correlate, correlation_table
from beaufort.testbed.expectations import fit_accuracies, shift_expectations
from beaufort.testbed.grid import Grid, Pair, Score, Setting
from beaufort.testbed.load import GRIDS, load_grid
from beaufort.testbed.own_scores import read_scores
from beaufort.testbed.placement import Placement, Standing, place
from beaufort.testbed.plane import Plane, fit_plane
from beaufort.testbed.published_run import PublishedRun, run_published
from beaufort.testbed.published_sets import PUBLISHED_SETS, FoundSets, TestbedSet, find_published_sets
from beaufort.testbed.robustness import (
    Accuracies,
    Effective,
    EffectiveRobustness,
    Relative,
    RelativeRobustness,
    accuracy_intervals,
    effective_robustness,
    relative_robustness,
)
from beaufort.testbed.trend import (
    Interval,
    Knee,
    Line,
    Trend,
    band,
    coefficient_intervals,
    fit_line,
    fit_shift,
    prediction_interval,
)

__all__ = [
    "GRIDS",
    "PUBLISHED_SETS",
    "Accuracies",
    "AgreementLine",
    "Correlation",
    "Effective",
    "EffectiveRobustness",
    "EstimatedAccuracy",
    "FoundSets",
    "Grid",
    "Interval",
    "Knee",
    "Line",
    "Pair",
    "Placement",
    "Plane",
    "PublishedRun",
    "Relative",
    "RelativeRobustness",
    "Score",
    "Setting",
    "Standing",
    "TestbedSet",
    "Trend",
    "accuracy_intervals",
    "agreement_lines",
    "band",
    "coefficient_intervals",
    "correlate",
    "correlation_table",
    "effective_robustness",
    "find_published_sets",
    "fit_accuracies",
    "fit_line",
    "fit_plane",
    "fit_shift",
    "load_grid",
    "place",
    "prediction_interval",
    "read_scores",
    "relative_robustness",
    "run_published",
    "shift_expectations",
]

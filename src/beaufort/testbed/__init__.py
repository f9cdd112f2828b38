"""The ImageNet testbed: is a model robust beyond what its clean accuracy buys?

Accuracies here are percentages and robustness is in percentage points, as in the paper (Taori et al., 2020).
"""

from __future__ import annotations

from beaufort.testbed.bands import band, coefficient_intervals
from beaufort.testbed.correlation import Correlation, correlate, correlation_table
from beaufort.testbed.effective import (
    Effective,
    EffectiveRobustness,
    accuracy_intervals,
    effective_robustness,
)
from beaufort.testbed.fit import Interval, Knee, Line, Trend, fit_line, fit_shift
from beaufort.testbed.grid import Grid, Pair
from beaufort.testbed.load import GRIDS, load_grid
from beaufort.testbed.relative import Relative, RelativeRobustness, relative_robustness
from beaufort.testbed.settings import Setting

__all__ = [
    "GRIDS",
    "Correlation",
    "Effective",
    "EffectiveRobustness",
    "Grid",
    "Interval",
    "Knee",
    "Line",
    "Pair",
    "Relative",
    "RelativeRobustness",
    "Setting",
    "Trend",
    "accuracy_intervals",
    "band",
    "coefficient_intervals",
    "correlate",
    "correlation_table",
    "effective_robustness",
    "fit_line",
    "fit_shift",
    "load_grid",
    "relative_robustness",
]

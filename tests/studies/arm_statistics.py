"""Metrics of arms and their differences, as the study of enhancements computes them."""

from __future__ import annotations

from beaufort.metrics.stats import Estimate
from beaufort.studies.arm_metrics import ArmMetrics, combined, intervals

__all__ = ["difference", "level_of"]


def level_of(arm: ArmMetrics, metric: str) -> Estimate:
    """A number of one arm with its interval."""
    return intervals({metric: arm.rows[metric]})[metric]


def difference(control: ArmMetrics, arm: ArmMetrics, metric: str = "mCE") -> Estimate:
    """An arm's number less its control's, on the same images and the same seeds."""
    return intervals({metric: combined((1, arm.rows[metric]), (-1, control.rows[metric]))})[metric]

"""Statistics: confidence intervals, and tests of differences.

Pure functions of arrays. Metrics over several conditions have intervals over base images, because the
versions of one photo are not independent; a single accuracy has an exact interval. No interval has width
zero.
"""

from __future__ import annotations

from beaufort.metrics.stats.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from beaufort.metrics.stats.always_valid import always_valid_images_to_decide, always_valid_interval
from beaufort.metrics.stats.bounded import images_to_decide, looks, mean_interval, mean_p_value
from beaufort.metrics.stats.differences import holm, mcnemar, newcombe
from beaufort.metrics.stats.estimate import (
    Estimate,
    binomial_cdf,
    clopper_pearson,
    proportion_intervals,
    validate_level,
)
from beaufort.metrics.stats.families import Family, simultaneous
from beaufort.metrics.stats.paired import (
    paired_half_width,
    paired_images_to_decide,
    paired_interval,
    paired_p_value,
)
from beaufort.metrics.stats.ranking import Ranked, letters, rank
from beaufort.metrics.stats.resampling import RESAMPLES, Resamples, bootstrap, bootstrap_means, resample
from beaufort.metrics.stats.sampling import detection_probability, marked_at_most

__all__ = [
    "RESAMPLES",
    "Estimate",
    "Family",
    "Ranked",
    "Resamples",
    "always_valid_images_to_decide",
    "always_valid_interval",
    "binomial_cdf",
    "bootstrap",
    "bootstrap_means",
    "clopper_pearson",
    "cohen_kappa",
    "detection_probability",
    "fleiss_kappa",
    "holm",
    "images_to_decide",
    "krippendorff_alpha",
    "letters",
    "looks",
    "marked_at_most",
    "mcnemar",
    "mean_interval",
    "mean_p_value",
    "newcombe",
    "paired_half_width",
    "paired_images_to_decide",
    "paired_interval",
    "paired_p_value",
    "proportion_intervals",
    "rank",
    "resample",
    "simultaneous",
    "validate_level",
]

"""Statistics: how sure a number is, and whether two differ by more than chance.

Pure functions of arrays. What mixes conditions is resampled over base images, because the versions of one
photo are not independent; one accuracy alone has an exact interval.
"""

from __future__ import annotations

from beaufort.stats.binomial import binomial_cdf, clopper_pearson
from beaufort.stats.bootstrap import RESAMPLES, bootstrap, bootstrap_means, interval
from beaufort.stats.estimate import Estimate
from beaufort.stats.paired import holm, mcnemar, paired_p_value
from beaufort.stats.ranking import Ranked, rank
from beaufort.stats.sequential import looks, seen_enough
from beaufort.stats.shares import share_intervals

__all__ = [
    "RESAMPLES",
    "Estimate",
    "Ranked",
    "binomial_cdf",
    "bootstrap",
    "bootstrap_means",
    "clopper_pearson",
    "holm",
    "interval",
    "looks",
    "mcnemar",
    "paired_p_value",
    "rank",
    "seen_enough",
    "share_intervals",
]

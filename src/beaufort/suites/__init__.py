"""Suites of conditions: corruptions, attacks, frames of sequences and other shifts of a dataset.

The published ones are files of the package, one a suite; one of your own is a file of the same kind.
"""

from __future__ import annotations

from beaufort.suites._schema import METRICS
from beaufort.suites.conditions import Condition
from beaufort.suites.loading import (
    SHIFT_SUITE_NAMES,
    SUITE_NAMES,
    get_suite,
    parse_suite,
    read_suite,
    register_suite,
    registered_suites,
    suite_from_corruptions,
    with_own_name,
)
from beaufort.suites.shifts import register_shift
from beaufort.suites.suite import Mistake, Suite, SuiteError

__all__ = [
    "METRICS",
    "SHIFT_SUITE_NAMES",
    "SUITE_NAMES",
    "Condition",
    "Mistake",
    "Suite",
    "SuiteError",
    "get_suite",
    "parse_suite",
    "read_suite",
    "register_shift",
    "register_suite",
    "registered_suites",
    "suite_from_corruptions",
    "with_own_name",
]

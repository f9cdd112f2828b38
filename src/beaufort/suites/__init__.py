"""Suites of conditions: corruptions, attacks, frames of sequences and other shifts of a dataset.

Published suites are YAML files of the package; your own suite is a file of the same form.
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

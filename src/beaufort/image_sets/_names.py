"""From what is asked for to the corruptions, severities and seed that are meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from beaufort.corruptions import corruptions, expand_names
from beaufort.errors import OptionError

__all__ = ["Variant", "corruption_names", "variants", "worker_count"]


class Variant(NamedTuple):
    """One corruption at one severity; or a sequence, which has none."""

    name: str
    severity: int | None

    @property
    def folder(self) -> str:
        """Where its outputs lie."""
        return self.name if self.severity is None else f"{self.name}/{self.severity}"

    def __str__(self) -> str:
        return self.name if self.severity is None else f"{self.name} at severity {self.severity}"


def corruption_names(names: Iterable[str]) -> tuple[str, ...]:
    """The corruptions meant by names of corruptions and of subsets, each once, in order.

    >>> corruption_names(["fog", "weather"])
    ('fog', 'snow', 'frost', 'brightness')
    """
    found = dict.fromkeys(expand_names(names, kind="corruption or subset"))
    if not found:
        raise OptionError(
            "expected at least one corruption, got none; give names, or a subset such as 'common'"
        )
    return tuple(found)


def variants(names: Iterable[str], severities: Sequence[int], scale: str) -> tuple[Variant, ...]:
    """Every named corruption at every severity; an error if the scale or a severity does not suit."""
    if not severities:
        raise OptionError("expected at least one severity from 1 to 5, got none")
    chosen = tuple(Variant(name, severity) for name in names for severity in dict.fromkeys(severities))
    for name, severity in chosen:
        corruptions[name].params(severity, scale)
    return chosen


def worker_count(jobs: int | None) -> int:
    """How many threads to use: what was asked for, or as many as there are processors to use."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise OptionError(f"jobs must be a positive integer, got {jobs!r}")
    return jobs

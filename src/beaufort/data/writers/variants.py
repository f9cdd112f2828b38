"""Validation of the corruptions, severities and threads of writers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_count
from beaufort.corruptions import (
    Chain,
    Severity,
    corruptions,
    expand_names,
    is_chain,
    validate_severity,
)


class Variant(NamedTuple):
    """A corruption at a severity; or a chain or sequence, which have no severity of their own."""

    name: str
    severity: Severity | None

    def __str__(self) -> str:
        return self.name if self.severity is None else f"{self.name} at severity {self.severity}"

    @property
    def chain(self) -> Chain:
        """The chain of corruptions."""
        return Chain.of(self.name, self.severity)

    @property
    def folder(self) -> str:
        """Directory of its outputs."""
        return self.name if self.severity is None else f"{self.name}/{self.severity}"


def corruption_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return corruptions and chains without duplicates, with subsets expanded.

    >>> corruption_names(["fog", "weather", "fog@2+snow@3"])
    ('fog', 'snow', 'frost', 'brightness', 'fog@2+snow@3')
    """
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys((str(Chain.parse(name)),) if is_chain(name) else _single(name))
    if not found:
        raise OptionError("names must contain at least one corruption, or a subset such as 'common'")
    return tuple(found)


def _single(name: str) -> tuple[str, ...]:
    plain, has_severity, _ = name.partition("@") if isinstance(name, str) else (name, "", "")
    found = expand_names([plain], kind="corruption or subset")
    if has_severity:
        raise OptionError(f"unexpected severity in {name!r}; pass {plain!r} and its severity separately")
    return found


def variants(names: Iterable[str], severities: Sequence[Severity], scale: str) -> tuple[Variant, ...]:
    """Return all corruptions at all severities, and chains, after checking them for a scale."""
    if not severities:
        raise OptionError("severities must contain at least one number from 1 to 5")
    levels = dict.fromkeys(map(validate_severity, severities))
    chosen: list[Variant] = []
    for name in names:
        chosen += [Variant(name, None)] if is_chain(name) else [Variant(name, level) for level in levels]
    for name, severity in chosen:
        chain = Variant(name, severity).chain
        chain.check(scale)
        for link in chain.links:
            corruptions[link.name].params(link.severity, scale)
    return tuple(chosen)


def worker_count(jobs: int | None) -> int:
    """Return the number of threads; by default, that of the available processors."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return validate_count("jobs", jobs)

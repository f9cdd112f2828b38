"""From what is asked for to the corruptions, severities and seed that are meant."""

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
    """One corruption at one severity; a chain of corruptions, or a sequence, which have none of their own."""

    name: str
    severity: Severity | None

    def __str__(self) -> str:
        return self.name if self.severity is None else f"{self.name} at severity {self.severity}"

    @property
    def chain(self) -> Chain:
        """The corruptions that make it."""
        return Chain.of(self.name, self.severity)

    @property
    def folder(self) -> str:
        """Where its outputs lie."""
        return self.name if self.severity is None else f"{self.name}/{self.severity}"


def corruption_names(names: Iterable[str]) -> tuple[str, ...]:
    """The corruptions meant by names of corruptions, of subsets and of chains, each once, in order.

    >>> corruption_names(["fog", "weather", "fog@2+snow@3"])
    ('fog', 'snow', 'frost', 'brightness', 'fog@2+snow@3')
    """
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys((str(Chain.parse(name)),) if is_chain(name) else _single(name))
    if not found:
        raise OptionError(
            "expected at least one corruption, got none; give names, or a subset such as 'common'"
        )
    return tuple(found)


def _single(name: str) -> tuple[str, ...]:
    plain, has_severity, _ = name.partition("@") if isinstance(name, str) else (name, "", "")
    found = expand_names([plain], kind="corruption or subset")
    if has_severity:
        raise OptionError(
            f"the severities of a single corruption must be given apart, got {name!r}; write {plain!r}, or "
            "a chain of several with their severities"
        )
    return found


def variants(names: Iterable[str], severities: Sequence[Severity], scale: str) -> tuple[Variant, ...]:
    """Every corruption at every severity, and chains; an error if the scale or a severity does not suit."""
    if not severities:
        raise OptionError("expected at least one severity from 1 to 5, got none")
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
    """How many threads to use: what was asked for, or as many as there are processors to use."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return validate_count("jobs", jobs)

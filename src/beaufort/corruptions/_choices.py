"""Random choice of a corruption for each image: names with weights, chains and severities."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_number
from beaufort.corruptions._chain import Chain
from beaufort.corruptions._corruption import Severity, validate_severity
from beaufort.corruptions._names import expand_names

Severities = Severity | Sequence[Severity] | frozenset[Severity] | None


class Names(NamedTuple):
    """Corruptions and chains, and how often each is chosen."""

    names: tuple[str, ...]
    upto: tuple[float, ...] | None
    """Cumulative weights; None if all are equal."""

    def pick(self, digest: bytes) -> str:
        """Choose one by eight random bytes."""
        if self.upto is None:
            return pick(self.names, digest)  # type: ignore[no-any-return]
        point = int.from_bytes(digest, "little") / 2**64
        return self.names[min(bisect.bisect_right(self.upto, point * self.upto[-1]), len(self.names) - 1)]


def pick(things: Sequence[Any], digest: bytes) -> Any:
    """Choose one of equally likely things by eight random bytes."""
    return things[int.from_bytes(digest, "little") * len(things) >> 64]


def weigh_names(given: Sequence[object], weights: Sequence[float] | None) -> Names:
    """Expand names of corruptions, lists and chains; the members of a list divide its weight.

    >>> weigh_names(["noise", "fog@2+jpeg_compression@3"], [3, 1]).upto
    (1.0, 2.0, 3.0, 4.0)
    """
    each = [_members(name) for name in given]
    names = tuple(name for members in each for name in members)
    if weights is None:
        return Names(names, None)
    if len(weights) != len(given) or any(validate_number("weights", one, 0) == 0 for one in weights):
        raise OptionError(
            f"weights must be {len(given)} positive numbers, one for each name, got {weights!r:.60}"
        )
    each_weight = [
        weight / len(members) for members, weight in zip(each, weights, strict=True) for _ in members
    ]
    return Names(names, tuple(accumulate(each_weight)))


def _members(name: object) -> tuple[str, ...]:
    if isinstance(name, str) and ("+" in name or "@" in name):
        return (str(Chain.parse(name)),)
    return expand_names([name], kind="corruption")


def freeze_severity(severity: Any) -> Any:
    """Return a hashable form of severities. A tuple of two is a range, a list a set of choices."""
    single = (
        isinstance(severity, str) or getattr(severity, "ndim", 1) == 0
    )  # a string, an array of one number
    single = single or isinstance(severity, Mapping) or not isinstance(severity, Iterable)
    if single or isinstance(severity, tuple | frozenset):
        return severity
    chosen = tuple(severity)
    return frozenset(map(validate_severity, chosen)) if len(chosen) == 2 else chosen


def expand_severities(severity: Any) -> tuple[Severity | None, ...]:
    """Return the severities to choose from, for a result of `freeze_severity`.

    >>> expand_severities((2, 4)), expand_severities(frozenset([2, 4.5])), expand_severities(None)
    ((2, 3, 4), (2, 4.5), (None,))
    """
    if severity is None:
        return (None,)
    if not isinstance(severity, tuple | frozenset):
        return (validate_severity(severity),)
    checked = tuple(map(validate_severity, severity))
    if isinstance(severity, frozenset):
        return tuple(sorted(checked))
    if len(checked) != 2:
        return checked
    low, high = checked
    if not (isinstance(low, int) and isinstance(high, int)):
        raise OptionError(
            f"severity must be a pair of integers, got {severity!r}; pass a list, as in [1, 1.5, 2]"
        )
    if low > high:
        raise OptionError(f"severity must be a pair (lowest, highest), got {severity!r}")
    return tuple(range(low, high + 1))

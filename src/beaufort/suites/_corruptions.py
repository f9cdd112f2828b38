"""A suite without a file: corruptions by name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from beaufort.corruptions import SEVERITIES, expand_names
from beaufort.errors import OptionError
from beaufort.suites._suite import Suite

__all__ = ["suite_of_corruptions"]

_LONGEST = 60


def suite_of_corruptions(names: Sequence[str], severities: Sequence[int] = SEVERITIES) -> Suite:
    """The clean images, and each corruption at each severity; images are corrupted at the size they have.

    >>> str(suite_of_corruptions(["fog", "snow"], [3]))
    'fog-snow-3@1'

    Args:
        names: of corruptions, or of lists of them, as `weather`.
        severities: from 1 to 5.
    """
    for name in names:
        if "@" in name or "/" in name:
            raise OptionError(
                f"a corruption must be given by its name alone, as 'fog', got {name!r:.60}; severities are "
                "given apart (`--severity 3`, `suite_of_corruptions(['fog'], [3])`)"
            )
    members = tuple(dict.fromkeys(expand_names(names, kind="corruption")))
    levels = tuple(sorted(dict.fromkeys(severities)))
    return Suite(
        name=_called(names, members, levels),
        version=1,
        dataset="data",
        scale="auto",
        corruptions=members,
        severities=levels,
        title=f"{', '.join(dict.fromkeys(names))} at severity {', '.join(map(str, levels))}",
    )


def _called(names: Sequence[str], members: Sequence[str], levels: Sequence[int]) -> str:
    """A name that says what is in it; one that would be too long ends in a digest."""
    steps = [f"{levels[0]}-{levels[-1]}"] if len(levels) == len(SEVERITIES) else map(str, levels)
    whole = "-".join([*dict.fromkeys(names), *steps])
    if len(whole) <= _LONGEST:
        return whole
    digest = hashlib.sha256(repr((tuple(members), tuple(levels))).encode()).hexdigest()[:8]
    return f"{len(members)}-corruptions-{digest}"

"""A suite without a file: corruptions by name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from beaufort._core.errors import OptionError
from beaufort.corruptions import SEVERITIES, Chain, Severity, expand_names, is_chain
from beaufort.suites._suite import Suite

_LONGEST = 60


def suite_of_corruptions(names: Sequence[str], severities: Sequence[Severity] = SEVERITIES) -> Suite:
    """The clean images, and each corruption at each severity; images are corrupted at the size they have.

    >>> str(suite_of_corruptions(["fog", "snow"], [3]))
    'fog-snow-3@1'
    >>> suite_of_corruptions(["fog@2+jpeg_compression@3"]).shifts
    ('fog@2+jpeg_compression@3',)

    Args:
        names: of corruptions, or of lists of them, as `weather`; chains with severities of their own, as
            `fog@2+jpeg_compression@3`.
        severities: from 1 to 5; chains do not use them.
    """
    chains = tuple(dict.fromkeys(str(Chain.parse(name)) for name in names if is_chain(name)))
    plain = [name for name in names if not is_chain(name)]
    for name in plain:
        if "@" in name or "/" in name:
            raise OptionError(
                f"a corruption must be given by its name alone, as 'fog', got {name!r:.60}; severities are "
                "given apart (`--severity 3`, `suite_of_corruptions(['fog'], [3])`)"
            )
    members = tuple(dict.fromkeys(expand_names(plain, kind="corruption")))
    levels = tuple(sorted(dict.fromkeys(severities))) if plain else ()
    at = f"{', '.join(dict.fromkeys(plain))} at severity {', '.join(map(str, levels))}"
    return Suite(
        name=_called(plain, members, levels, chains),
        version=1,
        dataset="data",
        scale="auto",
        corruptions=members,
        severities=levels,
        shifts=chains,
        title=", ".join([*([at] if plain else []), *chains]),
    )


def _called(
    names: Sequence[str], members: Sequence[str], levels: Sequence[Severity], chains: Sequence[str]
) -> str:
    """A name that says what is in it; one that would be too long ends in a digest."""
    steps = [f"{levels[0]}-{levels[-1]}"] if levels == SEVERITIES else map(str, levels)
    made = [chain.replace("@", "").replace("+", ".") for chain in chains]
    whole = "-".join([*dict.fromkeys(names), *steps, *made])
    if len(whole) <= _LONGEST:
        return whole
    facts = (tuple(members), tuple(levels), *([tuple(chains)] if chains else []))
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:8]
    return f"{len(members) + len(chains)}-corruptions-{digest}"

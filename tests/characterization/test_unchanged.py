"""What users can do today gives what it gave before the package was reorganized.

Groups of scenarios run in two processes, one of which imports torch. Edit `renames.py`, or the `now`
spelling of a scenario, when a name changes; `recorded.json` stays as it is.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.characterization import harness, renames
from tests.characterization.scenarios import GROUPS

RECORDED = harness.load_recorded()


def test_every_scenario_is_recorded() -> None:
    scenarios = {name: {one.name for one in group.scenarios} for name, group in GROUPS.items()}
    assert {name: set(records) for name, records in RECORDED.items()} == scenarios


NIGHTLY = {name for name, group in GROUPS.items() if group.heavy} | {"corruption-sizes"}
"""Sizes take as long as the other groups together, and `corruptions` has every corruption at one size."""


def _process(name: str) -> tuple[str, ...]:
    """Return the groups that run in the same process; those that list the cache come first."""
    if name in NIGHTLY:
        return (name,)
    with_torch = "torch" in GROUPS[name].requires
    found = [one for one in GROUPS if one not in NIGHTLY and ("torch" in GROUPS[one].requires) == with_torch]
    return tuple(sorted(found, key=lambda one: one != "lists"))


@cache
def _found(names: tuple[str, ...]) -> dict[str, dict[str, harness.Record]]:
    present = [name for name in names if not harness.missing(GROUPS[name])]
    return harness.run_groups(present, "now", harness.ROOT / "src")


def _marks(name: str) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.slow, pytest.mark.xdist_group(f"unchanged {_process(name)[0]}")]
    return [*marks, pytest.mark.nightly] if name in NIGHTLY else marks


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in GROUPS])
def test_unchanged(name: str) -> None:
    if lacking := harness.missing(GROUPS[name]):
        pytest.skip(f"{lacking} is missing")
    found = _found(_process(name))[name]
    wrong = []
    for scenario in GROUPS[name].scenarios:
        lines = harness.differences(scenario, RECORDED[name][scenario.name], found.get(scenario.name, {}))
        facts = [(f"{scenario.name}: {line}", line.partition(": recorded ")[0]) for line in lines]
        wrong += [text for text, fact in facts if not renames.is_changed(name, f"{scenario.name}: {fact}")]
    assert not wrong, "\n".join(wrong)

"""What users can do today gives what it gave before the package was reorganized.

Each group of scenarios runs in a process of its own. Edit `renames.py`, or the `now` spelling of a scenario,
when a name changes; `recorded.json` stays as it is.
"""

from __future__ import annotations

import pytest

from tests.characterization import harness, renames
from tests.characterization.scenarios import GROUPS

RECORDED = harness.load_recorded()


def test_every_scenario_is_recorded() -> None:
    scenarios = {name: {one.name for one in group.scenarios} for name, group in GROUPS.items()}
    assert {name: set(records) for name, records in RECORDED.items()} == scenarios


def _marks(name: str) -> list[pytest.MarkDecorator]:
    """Sizes take as long as the other groups together, and `corruptions` has every corruption at one size."""
    nightly = name == "corruption-sizes" or GROUPS[name].heavy
    return [pytest.mark.slow, pytest.mark.nightly] if nightly else [pytest.mark.slow]


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in GROUPS])
def test_unchanged(name: str) -> None:
    if lacking := harness.missing(GROUPS[name]):
        pytest.skip(f"{lacking} is missing")
    found = harness.run_groups([name], "now", harness.ROOT / "src")[name]
    wrong = []
    for scenario in GROUPS[name].scenarios:
        lines = harness.differences(scenario, RECORDED[name][scenario.name], found.get(scenario.name, {}))
        facts = [(f"{scenario.name}: {line}", line.partition(": recorded ")[0]) for line in lines]
        wrong += [text for text, fact in facts if not renames.is_changed(name, f"{scenario.name}: {fact}")]
    assert not wrong, "\n".join(wrong)

"""All groups of scenarios, by name."""

from __future__ import annotations

from tests.characterization.scenario import Group
from tests.characterization.scenarios import corruptions, evaluation

GROUPS: dict[str, Group] = {
    group.name: group for module in (corruptions, evaluation) for group in module.GROUPS
}

"""All groups of scenarios, by name."""

from __future__ import annotations

from tests.characterization.scenario import Group
from tests.characterization.scenarios import applications, corruptions, evaluation, files, numbers, stored

GROUPS: dict[str, Group] = {
    group.name: group
    for module in (corruptions, evaluation, numbers, files, applications, stored)
    for group in module.GROUPS
}

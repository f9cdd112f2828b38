"""The study as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping

from beaufort.studies.html import data_address, study_html
from beaufort.studies.mnist_c.story import REHEARSAL, RULE, Story


def html_page(story: Story, figures: Mapping[str, bytes]) -> str:
    """The text of the page; figures are part of it."""
    navigation = {"conclusions": "Conclusions", **{table.name: table.name for table in story.tables}}
    return study_html(
        "mnist-c",
        title="MNIST-C, reproduced",
        navigation={**navigation, "differences": "Where we differ", "figures": "Figures"},
        rehearsal=REHEARSAL if story.rehearsal else "",
        counted="digits",
        rule=RULE,
        claims=story.claims,
        tables=story.tables,
        why=story.why,
        remarks={"fig4": story.over_all_text},
        noise=story.noise,
        differing=story.differing(),
        figures={name: data_address(name, content) for name, content in figures.items()},
        facts=story.facts,
        trainings=story.trainings,
    )

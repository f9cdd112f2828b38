"""The study as one self-contained HTML page."""

from __future__ import annotations

from beaufort.reproduce.html import data_address, study_html
from beaufort.reproduce.icons_50.settings import SPLITS, VARIANTS
from beaufort.reproduce.icons_50.story import REHEARSAL, RULE, IconStory

__all__ = ["html_page"]


def html_page(story: IconStory) -> str:
    """The text of the page; it has no icon but those of `story.examples`."""
    navigation = {"conclusions": "Conclusions"} if story.claims else {}
    navigation |= {table.name: table.name for table in story.tables}
    navigation |= {group.name: group.name for group in story.groups}
    navigation |= {"confusions": "Confusions"} if story.confusions else {}
    return study_html(
        "icons-50",
        title="Icons-50, reproduced",
        navigation=navigation,
        rehearsal=REHEARSAL if story.rehearsal else "",
        counted="icons",
        rule=RULE,
        claims=story.claims,
        tables=story.tables,
        remarks={"shake": story.answer()},
        groups=story.groups,
        confusions=story.confusions,
        networks={name: variant.title for name, variant in VARIANTS.items()},
        splits=SPLITS,
        examples=data_address("examples.png", story.examples) if story.examples else "",
        facts=story.facts,
        trainings=story.trainings,
    )

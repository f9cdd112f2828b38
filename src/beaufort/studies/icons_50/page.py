"""The study as one self-contained HTML page."""

from __future__ import annotations

from beaufort.studies.html import data_address, study_html
from beaufort.studies.icons_50.settings import SPLITS, VARIANTS
from beaufort.studies.icons_50.story import CONFUSIONS, FEW, REHEARSAL, RULE, IconStory

_SHORT = {"shake": "Shake-Shake", "subtype-styles": "Subtypes by style"}
"""What a section is called in the navigation, where its name is too short."""


def html_page(story: IconStory) -> str:
    """The text of the page; it has no icon but those of `story.examples`."""
    navigation = {"conclusions": "Conclusions"} if story.claims else {}
    named = [table.name for table in story.tables] + [group.name for group in story.groups]
    navigation |= {name: _SHORT.get(name, name.capitalize()) for name in named}
    navigation |= {"confusions": "Confusions"} if story.confusions else {}
    navigation |= {"examples": "Examples"} if story.examples else {}
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
        few=FEW,
        told_of_confusions=CONFUSIONS,
        examples=story.examples,
        picture=data_address("examples.png", story.examples.png) if story.examples else "",
        facts=story.facts,
        trainings=story.trainings,
    )

"""The study as a Markdown page."""

from __future__ import annotations

from beaufort.studies.failed import failed_markdown
from beaufort.studies.icons_50.settings import SPLITS, VARIANTS
from beaufort.studies.icons_50.story import (
    CONFUSIONS,
    FEW,
    REHEARSAL,
    RULE,
    GroupTable,
    IconStory,
)
from beaufort.studies.measured import table_markdown

_HARDEST = 10


def markdown_page(story: IconStory) -> str:
    """The text of the page."""
    lines = ["# Icons-50, reproduced", ""]
    lines += [f"**{REHEARSAL}**", ""] if story.rehearsal else []
    lines += [f"- {key}: {value}" for key, value in story.facts.items()]
    lines += ["", "Each cell: our value [95 % interval over icons] · the paper's.", RULE]
    lines += failed_markdown(story.trainings)
    if story.claims:
        lines += ["", "## Conclusions", "", "| statement | measured | |", "|---|---|---|"]
    lines += [f"| {one.statement} | {one.measured} | {one.verdict} |" for one in story.claims]
    for table in story.tables:
        lines += table_markdown(table, table.title)
        lines += ["", story.answer()] if table.name == "shake" and story.answer() else []
    for group in story.groups:
        lines += _groups(group)
    if story.confusions:
        lines += ["", "## Confusions", "", CONFUSIONS, ""]
        lines += ["| network | held out | class | answer | icons | of the class |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [
            f"| {VARIANTS[one.network].title} | {SPLITS[one.split]} | {one.of} | {one.answered} | "
            f"{one.icons:.3g} | {one.share:.0%} |"
            for one in story.confusions
        ]
    if story.examples:
        lines += [
            "",
            "## Examples by style",
            "",
            "![icons by style](examples.png)",
            "",
            story.examples.about,
            "",
        ]
        lines += [f"- {credit}" for credit in story.examples.credits]
    return "\n".join(lines) + "\n"


def _groups(group: GroupTable) -> list[str]:
    lines = ["", f"## {group.title}", "", FEW]
    lines += [f"`{group.name}.csv` has all {len(group.rows)}.", ""] if len(group.rows) > _HARDEST else [""]
    lines += [f"| {group.corner} | icons | {' | '.join(group.columns)} |"]
    lines.append("|---" * (len(group.columns) + 2) + "|")
    for name, (icons, *shares) in list(group.rows.items())[:_HARDEST]:
        lines.append(f"| {name} | {icons:.0f} | {' | '.join(f'{100 * share:.0f}' for share in shares)} |")
    return lines

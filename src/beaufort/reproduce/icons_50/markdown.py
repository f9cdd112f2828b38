"""The study as a Markdown page."""

from __future__ import annotations

from beaufort.reproduce.failed import failed_markdown
from beaufort.reproduce.icons_50.settings import SPLITS, VARIANTS
from beaufort.reproduce.icons_50.story import REHEARSAL, RULE, GroupTable, IconStory
from beaufort.reproduce.measured import table_markdown

__all__ = ["markdown_page"]

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
        lines += ["", "## Confusions", "", "| network | held out | class | answer | icons | of the class |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [
            f"| {VARIANTS[one.network].title} | {SPLITS[one.split]} | {one.of} | {one.answered} | "
            f"{one.icons:.1f} | {one.share:.0%} |"
            for one in story.confusions
        ]
    lines += ["", "## Examples", "", "![icons by style](examples.png)"] if story.examples else []
    return "\n".join(lines) + "\n"


def _groups(group: GroupTable) -> list[str]:
    lines = ["", f"## {group.title}", "", f"The {_HARDEST} hardest; `{group.name}.csv` has all.", ""]
    lines += [f"| {group.corner} | icons | {' | '.join(group.columns)} |"]
    lines.append("|---" * (len(group.columns) + 2) + "|")
    for name, (icons, *shares) in list(group.rows.items())[:_HARDEST]:
        lines.append(f"| {name} | {icons:.0f} | {' | '.join(f'{100 * share:.0f}' for share in shares)} |")
    return lines

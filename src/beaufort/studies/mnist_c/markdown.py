"""The study as a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence

from beaufort.studies.failed import failed_markdown
from beaufort.studies.measured import table_markdown
from beaufort.studies.mnist_c.story import REHEARSAL, RULE, Story


def markdown_page(story: Story, figures: Sequence[str]) -> str:
    """The text of the page; figures are files beside it."""
    lines = ["# MNIST-C, reproduced", ""]
    lines += [f"**{REHEARSAL}**", ""] if story.rehearsal else []
    lines += [f"- {key}: {value}" for key, value in story.facts.items()]
    lines += ["", "Each cell: our value [95 % interval over digits] · the paper's.", RULE]
    lines += failed_markdown(story.trainings)
    lines += ["", "## Conclusions", "", "| statement | measured | |", "|---|---|---|"]
    lines += [f"| {one.statement} | {one.measured} | {one.verdict} |" for one in story.claims]
    for table in story.tables:
        lines += table_markdown(table, f"{table.title} ({table.name})")
    lines += ["", story.over_all_text] if story.over_all_text else []
    lines += ["", "## Pessimal noise", "", story.noise] if story.noise else []
    lines += ["", "## Where we differ", "", "| cell | ours | why |", "|---|---|---|"]
    lines += [f"| {place} | {values} | {why} |" for place, values, why in story.differing()]
    lines += ["", "## Figures", "", *(f"![{name}]({name})" for name in figures)]
    return "\n".join(lines) + "\n"

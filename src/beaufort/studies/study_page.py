"""What the pages of all studies have in common: the head as Markdown, and one self-contained HTML file."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beaufort._core.pages import render
from beaufort.report.provenance import Fact
from beaufort.studies.failed_runs import CheckedRuns, failed_markdown
from beaufort.training.ending import ENDING_RULE

_MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class StudyPage:
    """The title, the facts and the rule that stand on every page of a study."""

    template: str
    title: str
    facts: Mapping[str, str]
    """Hardware, seeds, time and the like."""
    rule: str
    """How to read the numbers."""
    runs: CheckedRuns
    """Training runs, of which those that failed are listed first."""
    rehearsal: str = ""
    """A warning; empty unless it is a rehearsal."""
    counted: str = ""
    """What intervals in the paper's tables are over; empty if there are no such tables."""

    def markdown_head(self) -> list[str]:
        """Return the lines from the title to the failed training runs."""
        lines = [f"# {self.title}", ""]
        lines += [f"**{self.rehearsal}**", ""] if self.rehearsal else []
        lines += [*(f"- {key}: {value}" for key, value in self.facts.items()), ""]
        if self.counted:
            lines.append(f"Each cell: our value [95 % interval over {self.counted}] · the paper's.")
        return [*lines, self.rule, *failed_markdown(self.runs)]

    def html(self, navigation: Mapping[str, str], **values: Any) -> str:
        """Return the text of the page, with titles of its sections by id and what its template needs."""
        return render(
            f"studies/{self.template}.html",
            styles=["studies/study.css"],
            eyebrow="reproduction",
            title=self.title,
            facts=[Fact(key, (value,)) for key, value in self.facts.items()],
            rule=self.rule,
            rehearsal=self.rehearsal,
            counted=self.counted,
            trainings=self.runs,
            ending_rule=ENDING_RULE,
            navigation={**({"failed": "Without learning"} if self.runs.failed else {}), **navigation},
            **values,
        )


def data_url(name: str, content: bytes) -> str:
    """Return an image as an address that is part of the page.

    >>> data_url("dot.png", b"dot")
    'data:image/png;base64,ZG90'
    """
    return f"data:{_MEDIA_TYPES[name.rpartition('.')[2]]};base64,{base64.b64encode(content).decode()}"

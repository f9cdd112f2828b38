"""Pages of studies: one list of sections becomes a Markdown page and a self-contained HTML page."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from beaufort._core.pages import render, render_fragment
from beaufort.studies.failed_runs import CheckedRuns
from beaufort.studies.paper_tables import Claim, Measured, ReproducedTable
from beaufort.training.ending import ENDING_RULE


class PageLink(NamedTuple):
    """A cell that links to a section."""

    text: str
    anchor: str

    def __str__(self) -> str:
        return self.text


Cell = str | Measured | PageLink


@dataclass(frozen=True, kw_only=True)
class PageSection:
    """A section of a page: a text, figures, a table, a remark and notes, each optional."""

    id: str
    title: str
    menu: str = ""
    """Title in the navigation, if it differs."""
    text: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)
    """Alternative texts by file name."""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    most: int | None = None
    """Number of rows on the Markdown page."""
    remark: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class StudyPage:
    """The contents of a study's pages."""

    title: str
    facts: Mapping[str, str]
    """Hardware, seeds, time and the like."""
    rule: str
    """How to read the numbers."""
    sections: Sequence[PageSection]
    runs: CheckedRuns
    """Training runs, of which failed ones are listed first."""
    rehearse: bool
    unit: str = ""
    """What intervals in tables of the paper are over; empty if there are no such tables."""

    def files(self, images: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
        """Yield both pages, given the contents of all figures by file name."""
        from beaufort.report.provenance import Fact

        yield "README.md", self.markdown().encode()
        values = {**self._values(), "facts": [Fact(name, (value,)) for name, value in self.facts.items()]}
        html = render(
            "studies/study.html",
            styles=["studies/study.css"],
            eyebrow="reproduction",
            navigation={one.id: one.menu or one.title for one in values["sections"]},
            urls={name: data_url(name, content) for name, content in images.items()},
            **values,
        )
        yield "index.html", html.encode()

    def markdown(self) -> str:
        return render_fragment("studies/study.md", **self._values())

    def _values(self) -> dict[str, Any]:
        failed = PageSection(
            id="failed",
            title="Training runs without sign of learning",
            menu="Failed runs",
            text=f"{ENDING_RULE} These runs count like all others.",
            head=("training run", "seed", "", "part of"),
            rows=[tuple(map(str, run)) for run in self.runs.failed],
        )
        sections = [failed, *self.sections] if self.runs.failed else self.sections
        return {**vars(self), "sections": sections}


def table_section(
    table: ReproducedTable, *, title: str = "", menu: str = "", remark: str = ""
) -> PageSection:
    """Return a section with a table of the paper."""
    return PageSection(
        id=table.name,
        title=title or table.title,
        menu=menu or table.name.capitalize(),
        head=(table.corner, *table.columns),
        rows=[(name, *(row.get(one, "") for one in table.columns)) for name, row in table.rows.items()],
        remark=remark,
    )


def claims_section(claims: Sequence[Claim]) -> PageSection:
    """Return a section with a row for each claim."""
    return PageSection(
        id="conclusions",
        title="Conclusions",
        head=("statement", "measured", "verdict"),
        rows=[(one.statement, one.measured, one.verdict) for one in claims],
    )


def data_url(name: str, content: bytes) -> str:
    """Return the content of an image file as a URL.

    >>> data_url("dot.png", b"dot")
    'data:image/png;base64,ZG90'
    """
    kind = {"png": "image/png", "svg": "image/svg+xml"}[name.rpartition(".")[2]]
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"

"""The page: one HTML file that needs nothing else.

What a reader without scripts must see is written by the templates: the headline, the ranking, the table of
errors and how it all was made. The figures are drawn by `data/*.js` from one block of JSON.
"""

from __future__ import annotations

from beaufort._core.pages import render
from beaufort.report import _view
from beaufort.report._data import page_data
from beaufort.report._text import default_title
from beaufort.report.classes import find_worst_classes
from beaufort.report.examples import MISTAKES, Examples
from beaufort.report.headline import about, headline
from beaufort.report.provenance import provenance_facts
from beaufort.report.tables import baseline_words
from beaufort.results import Scores

STYLES = ("report/report.css",)
SCRIPTS = (
    "_core/pages/base.js",
    "report/tables.js",
    "report/charts.js",
    "report/compare.js",
    "report/calibration.js",
    "report/pictures.js",
    "_core/pages/theme.js",
    "report/page.js",
)


def to_html(scores: Scores, *, examples: Examples | None = None, title: str | None = None) -> str:
    """The page's text; equal input gives equal bytes, as all times come from the store.

    Args:
        scores: from `score`.
        examples: from `examples_of_data` or `examples_of_pictures`; without, no pictures are shown.
        title: of the page; made of the models and the suite if None.
    """
    worst = find_worst_classes(scores)
    first = headline(scores, scores.models[0])
    return render(
        "report/page.html",
        styles=STYLES,
        scripts=SCRIPTS,
        data=page_data(scores, worst, examples),
        title=default_title(scores) if title is None else title,
        eyebrow=scores.suite.title,
        first=first,
        gauge=_view.gauge(scores, first),
        about=f"{about(scores)} {baseline_words(scores).replace('`', '')}",
        notes=scores.notes,
        navigation=_view.navigation(scores),
        models=[model.model for model in scores.models],
        ranking=_view.ranking(scores),
        parts=_view.part_tables(scores),
        examples=examples,
        most_mistakes=MISTAKES,
        worst_note=worst.note,
        facts=provenance_facts(scores),
        **_view.figures(scores),
    )

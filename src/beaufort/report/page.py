"""The page: one HTML file that needs nothing else.

What a reader without scripts must see is written here as HTML: the headline, the ranking, the table of errors
and how it all was made. The figures are drawn by `data/*.js` from one block of JSON.
"""

from __future__ import annotations

from html import escape
from string import Template

from beaufort.report._data import page_data
from beaufort.report._html_frames import bars, calibration, classes, curves, mistakes, strips
from beaufort.report._html_head import controls, foot, head, navigation
from beaufort.report._html_parts import parts as part_tables
from beaufort.report._html_tables import heatmap, ranking
from beaufort.report._text import default_title
from beaufort.report.classes import find_worst_classes
from beaufort.report.examples import Examples
from beaufort.report.frame import as_script, bundle, content_policy, page_file
from beaufort.report.headline import headline
from beaufort.report.made import made
from beaufort.results import Scores

__all__ = ["page_policy", "to_html"]

_SCRIPTS = ("base.js", "tables.js", "charts.js", "calibration.js", "pictures.js", "theme.js", "page.js")


def to_html(scores: Scores, *, examples: Examples | None = None, title: str | None = None) -> str:
    """The page's text; equal input gives equal bytes, as all times come from the store.

    Args:
        scores: from `score`.
        examples: from `examples_of_data` or `examples_of_pictures`; without, no pictures are shown.
        title: of the page; made of the models and the suite if None.
    """
    worst = find_worst_classes(scores)
    script = _script()
    named = default_title(scores) if title is None else title
    first = headline(scores, scores.models[0])
    parts = {
        "title": escape(named),
        "policy": escape(content_policy(script)),
        "style": page_file("page.css"),
        "script": script,
        "data": as_script(page_data(scores, worst, examples)),
        "head": head(scores, first, named),
        "controls": controls(scores),
        "navigation": navigation(scores),
        "ranking": ranking(scores),
        "heatmap": heatmap(scores),
        "parts": part_tables(scores),
        "curves": curves(scores),
        "bars": bars(scores),
        "calibration": calibration(scores),
        "examples": strips(examples),
        "mistakes": mistakes(scores, examples),
        "classes": classes(worst),
        "made": foot(made(scores)),
    }
    for name in parts.keys() - {"policy", "style", "script", "data"}:
        parts[name] = parts[name].replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")
    return Template(page_file("page.html")).substitute(parts)


def _script() -> str:
    return bundle(*map(page_file, _SCRIPTS))


def page_policy() -> str:
    """What a page may load: nothing but itself; a page that holds others has the same policy."""
    return content_policy(_script())

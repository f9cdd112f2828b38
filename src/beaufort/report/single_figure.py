"""Figures of the page alone, for a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from beaufort._core.errors import OptionError
from beaufort._core.files import write_output
from beaufort._core.pages import render, render_fragment
from beaufort._core.validation import validate_choice
from beaufort.report.figure_numbers import WorstClasses, has_curves
from beaufort.report.html_page import SCRIPTS, STYLES, figure_sections
from beaufort.report.page_data import page_data
from beaufort.report.wording import default_title
from beaufort.results import Scores

FIGURES = {"bars": 640, "calibration": 760, "comparison": 760, "curves": 760, "heatmap": 860}
"""What can be shown, and how many pixels high."""


class HasScores(Protocol):
    """What `evaluate` returns."""

    def scores(self, **options: Any) -> Scores: ...


@dataclass(frozen=True)
class Figure:
    """A figure that a notebook shows and a browser opens; it needs no other file and no network."""

    title: str
    html: str
    """A whole page with the figure alone."""
    height: int
    """In pixels, of its frame in a notebook."""

    def save(self, path: Path | str) -> Path:
        """Write the figure as an HTML file."""
        target = Path(path)
        write_output(target, self.html.encode())
        return target

    def _repr_html_(self) -> str:
        shown = {"html": self.html, "title": self.title, "height": self.height}
        return render_fragment("report/frame.html", **shown)


def figure(
    of: Scores | HasScores, kind: str, *, model: str | None = None, compare: str | None = None
) -> Figure:
    """A figure of the page: `curves`, `heatmap`, `comparison`, `bars` or `calibration`.

    Args:
        of: scores, or what `evaluate` returned.
        kind: which one.
        model: whose; the best one's if None.
        compare: a model beside it; `comparison` takes the next best one if None.
    """
    validate_choice("figure", kind, FIGURES)
    scores = of if isinstance(of, Scores) else of.scores(calibration=kind == "calibration")
    _check(scores, kind)
    first, second = _places(scores, kind, model, compare)
    title = f"{default_title(scores)}: {kind}"
    data = page_data(scores, WorstClasses({}, ""), None)
    html = render(
        "report/figure.html",
        styles=STYLES,
        scripts=SCRIPTS,
        data={**data, "start": {"model": first, "compare": second}},
        kind=kind,
        title=title,
        **figure_sections(scores),
    )
    return Figure(title, html, FIGURES[kind])


def _check(scores: Scores, kind: str) -> None:
    if not scores.suite.corruptions:
        raise OptionError(f"figures need corruptions, and {scores.suite} has none")
    if kind == "curves" and not has_curves(scores):
        raise OptionError(f"curves need several severities, and {scores.suite} has one of each corruption")
    if kind == "comparison" and len(scores.models) < 2:
        raise OptionError("comparison needs at least two models, got 1")
    if kind == "calibration" and not scores.models[0].calibration:
        raise OptionError("calibration was left out of these scores; score with calibration=True")


def _places(scores: Scores, kind: str, model: str | None, compare: str | None) -> tuple[int, int]:
    """The places of the chosen model and of the one beside it; -1 if there is none."""
    names = [one.model for one in scores.models]
    for name in (model, compare):
        if name is not None:
            validate_choice("model of these scores", name, names)
    first = 0 if model is None else names.index(model)
    if compare is not None:
        return first, names.index(compare)
    return first, int(first == 0) if kind == "comparison" else -1

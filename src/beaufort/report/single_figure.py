"""Single figures of the page, for notebooks."""

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
"""Kinds of figures, with their height in pixels."""


class HasScores(Protocol):
    """Anything with scores, such as the result of `evaluate`."""

    def scores(self, **options: Any) -> Scores: ...


@dataclass(frozen=True)
class Figure:
    """A self-contained figure for notebooks and browsers."""

    title: str
    html: str
    """A page that contains only the figure."""
    height: int
    """Height of its frame in a notebook, in pixels."""

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
    """Return a figure of the page: `curves`, `heatmap`, `comparison`, `bars` or `calibration`.

    Args:
        of: scores, or the result of `evaluate`.
        kind: kind of the figure.
        model: model to show; the best one if None.
        compare: model to compare with; for `comparison`, the next best one if None.
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
        raise OptionError(f"figures require corruptions, and {scores.suite} has none")
    if kind == "curves" and not has_curves(scores):
        raise OptionError(f"curves require several severities, and {scores.suite} has one of each corruption")
    if kind == "comparison" and len(scores.models) < 2:
        raise OptionError("comparison requires at least two models, got 1")
    if kind == "calibration" and not scores.models[0].calibration:
        raise OptionError("these scores have no calibration; pass calibration=True to score")


def _places(scores: Scores, kind: str, model: str | None, compare: str | None) -> tuple[int, int]:
    """Return the indices of the model and of the one to compare with, -1 if none."""
    names = [one.model for one in scores.models]
    for name in (model, compare):
        if name is not None:
            validate_choice("model of these scores", name, names)
    first = 0 if model is None else names.index(model)
    if compare is not None:
        return first, names.index(compare)
    return first, int(first == 0) if kind == "comparison" else -1

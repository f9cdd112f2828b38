"""Figures of the page alone, as a notebook shows them."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.report import figure
from beaufort.results import Scores


@pytest.mark.parametrize(
    ("kind", "drawn"),
    [
        ("curves", "#curves-figure .panel"),
        ("heatmap", "#map td.heat"),
        ("comparison", "#comparison-table tbody tr"),
        ("bars", "#bars-figure .bar[data-c]"),
        ("calibration", "#calibration-figure svg"),
    ],
)
def test_each_is_drawn_in_a_frame(
    show: Callable[..., Any], scores: Scores, tmp_path: Path, kind: str, drawn: str
) -> None:
    notebook = tmp_path / "notebook.html"
    notebook.write_text(figure(scores, kind, model="middling")._repr_html_(), encoding="utf-8")
    frame = show(notebook).frame_locator("iframe")
    frame.locator(drawn).first.wait_for()
    assert frame.locator("section").count() == 1
    assert frame.locator("nav").count() == 0
    assert "middling" in frame.locator("main").inner_text()


def test_a_file_is_the_figure_alone(scores: Scores, tmp_path: Path) -> None:
    made = figure(scores, "comparison", model="bad", compare="good")
    path = made.save(tmp_path / "figure.html")
    assert path.read_text(encoding="utf-8") == made.html
    assert '"start":{"model":2,"compare":0}' in made.html
    assert "default-src 'none'" in unescape(made.html)


def test_results_of_evaluate_are_accepted(scores: Scores) -> None:
    calls: list[dict[str, Any]] = []

    def again(**options: Any) -> Scores:
        calls.append(options)
        return scores

    assert figure(SimpleNamespace(scores=again), "curves").html == figure(scores, "curves").html
    assert calls == [{"calibration": False}]


def test_invalid_options_are_rejected(scores: Scores, alone: Scores, digits: tuple[Scores, object]) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'curves'"):
        figure(scores, "curve")
    with pytest.raises(UnknownNameError, match="did you mean 'good'"):
        figure(scores, "curves", model="goood")
    with pytest.raises(OptionError, match=r"two models.*\b1\b"):
        figure(alone, "comparison")
    with pytest.raises(OptionError, match="several severities"):
        figure(digits[0], "curves")

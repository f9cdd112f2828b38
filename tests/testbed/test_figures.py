"""Figures for papers, and the study made from them."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.report.axes import Axes, percent_range
from beaufort.report.drawing import Drawing
from beaufort.testbed import Grid, load_grid
from beaufort.testbed.figures import looks, scatter_panel, write_figure
from beaufort.testbed.natural_shift_study import HIDDEN, SINCE_SHIFTS, since_2020, write_study

RESULTS = Path(__file__).resolve().parents[2] / "results" / "natural-shifts"
SVG = "{http://www.w3.org/2000/svg}"


def test_axes_are_logits() -> None:
    axes = Axes(0, 0, 100, 100, (10, 90), (10, 90), "logit")
    assert float(axes.x(50)) == pytest.approx(50)
    assert float(axes.y(50)) == pytest.approx(50)
    assert float(axes.x(90)) == pytest.approx(100)
    (point,) = axes.points([5, 50], [50, 50])
    assert point == pytest.approx((50, 50))
    low, high = percent_range([20, 80], "logit")
    assert 15 < low < 20
    assert 80 < high < 85


def test_infinite_values_are_drawn_at_the_edge() -> None:
    axes = Axes(0, 0, 100, 100, (10, 90), (10, 90), "logit")
    assert axes.points([0, 100], [100, 0]) == [(0, 0), (100, 100)]
    assert axes.points([5], [50]) == []  # a number that the frame does not reach stays outside
    assert percent_range([0, 20, 80, 100], "logit") == percent_range([20, 80], "logit")
    assert percent_range([0, 100], "linear") == pytest.approx((-5, 105))
    low, high = percent_range([0, 0], "logit")
    assert low < high


def test_models_that_are_not_in_a_figure(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("setting,accuracy\nval,80\n")
    grid = load_grid(f"paper+{tmp_path / 'mine.csv'}")
    with pytest.raises(UnknownNameError, match="unknown model"):
        write_figure(grid, tmp_path / "v2.svg", highlight=["nobody"])
    with pytest.raises(OptionError, match=r"mine .*accuracies"):
        write_figure(grid, tmp_path / "v2.svg", y="sketch", highlight=["mine"])


def test_every_model_is_drawn_once(paper: Grid, tmp_path: Path) -> None:
    path = write_figure(paper, tmp_path / "v2.svg")
    root = ElementTree.parse(path).getroot()
    dots = [one for one in root.iter(f"{SVG}path") if one.get("stroke-linecap") == "round"]
    both = ~(np.isnan(paper.column("val")) | np.isnan(paper.column("imagenetv2")))
    drawn = sum(one.get("d", "").count("M") for one in dots)
    assert drawn == int(both.sum()) + len(looks(paper))  # and one each in the legend
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert "ImageNetV2 (%)" in texts
    assert "trained with more data" in texts


def test_names_cannot_break_out(tmp_path: Path) -> None:
    drawing = Drawing(10, 10)
    drawing.text((0, 0), '<script>alert("x")</script>')
    assert "<script" not in drawing.svg()
    ElementTree.fromstring(drawing.svg())


def test_png_and_svg_show_the_same(paper: Grid) -> None:
    drawing = Drawing(400, 300)
    axes = scatter_panel(drawing, (60, 20, 320, 230), paper, "imagenetv2", intervals=False)
    image = Image.open(io.BytesIO(drawing.png(1)))
    assert image.size == (400, 300)
    row = paper.row_of["efficientnet-l2-noisystudent"]
    x, y = float(axes.x(paper.column("val")[row])), float(axes.y(paper.column("imagenetv2")[row]))
    red, green, blue = image.convert("RGB").getpixel((round(x), round(y)))  # type: ignore[misc]
    assert green > max(red, blue)  # trained with more data


def test_png_has_letters_for_every_word() -> None:
    """Pillow's font draws the same box for all letters that it lacks."""
    images = []
    for text in ("ρ, −1 – τ", "rho, -1 - tau", "日", "?"):
        drawing = Drawing(120, 30)
        drawing.text((5, 20), text)
        drawing.text((110, 15), text, upward=True, anchor="middle")
        images.append(drawing.png(1))
        assert text in drawing.svg()
    assert images[0] == images[1]
    assert images[2] == images[3]


def test_a_model_of_ones_own_is_there(tmp_path: Path) -> None:
    (tmp_path / "my <net>.csv").write_text("setting,accuracy\nval,80\nimagenetv2,75\nelsewhere,1\n")
    grid = load_grid(f"paper+{tmp_path / 'my <net>.csv'}")
    assert "my &lt;net&gt;" in write_figure(grid, tmp_path / "v2.svg").read_text()
    assert "my &lt;net&gt;" not in write_figure(grid, tmp_path / "v2.svg", highlight=["resnet50"]).read_text()


def test_hidden_models_are_not_standard(paper: Grid) -> None:
    """Models that the figures of the paper hide are not fitted on."""
    for shift, least in HIDDEN.items():
        assert (paper.column(paper.clean_of(shift).name)[paper.fitted] >= least).all(), shift


def test_colors_cover_every_model() -> None:
    for name in ("paper", "latest", "timm", "robustbench-imagenet"):
        grid = load_grid(name)
        assert (np.sum([one.models for one in looks(grid)], axis=0) == 1).all(), name


def test_since_2020(paper: Grid, timm: Grid) -> None:
    found = since_2020(paper, timm)
    assert tuple(one.shift for one in found) == SINCE_SHIFTS
    sketch = next(one for one in found if one.shift == "imagenet-sketch")
    assert len(sketch.entries) == 1556
    rows = {row.kind: row for row in sketch.by_kind()}
    assert rows["image-text"].above == rows["image-text"].n
    assert rows["image-text"].median > 10
    assert rows["imagenet-1k"].median < 2
    assert sum(row.n for row in rows.values()) == 1556


def test_the_documentation_shows_the_same_figures() -> None:
    shown = sorted((RESULTS.parents[1] / "docs" / "assets" / "testbed").iterdir())
    assert shown
    for path in shown:
        assert path.read_bytes() == (RESULTS / path.name).read_bytes(), path.name


def test_study_statements_about_kinds_of_data(paper: Grid, timm: Grid) -> None:
    medians = {one.shift: {row.kind: row.median for row in one.by_kind()} for one in since_2020(paper, timm)}
    assert max(map(abs, medians["imagenetv2-matched-frequency"].values())) < 1
    for shift in ("imagenet-sketch", "imagenet-r"):
        one = medians[shift]
        assert one["image-text"] > one["web"] > one["imagenet-21k"] > 5
        assert abs(one["imagenet-1k"]) < 1


def test_study_statements_about_attacks(paper: Grid) -> None:
    from beaufort.testbed import effective_robustness, relative_robustness

    for shift in ("vid-robust-pm10", "ytbb-robust-pm10"):
        assert all((one.rho or 0) > 0 for one in effective_robustness(paper, shift, select=["LP_ADV"]).models)
    assert (
        sum(one.tau > 0 for one in relative_robustness(paper, "vid-robust-pm10", select=["LP_ADV"]).models)
        == 1
    )


def test_the_study_is_what_the_repository_has(tmp_path: Path) -> None:
    made = list(write_study(tmp_path))
    assert len(made) == 10
    for path in made:
        assert path.stat().st_size < 300_000
        assert path.read_bytes() == (RESULTS / path.name).read_bytes(), path.name
    assert {path.name for path in RESULTS.iterdir()} == {path.name for path in made}

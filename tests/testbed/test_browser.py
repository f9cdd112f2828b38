"""The page of a grid in a real browser: Debian's chromium, driven by playwright."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from beaufort.testbed import (
    Grid,
    Knee,
    Line,
    accuracy_intervals,
    coefficient_intervals,
    correlate,
    effective_robustness,
    fit_shift,
    load_grid,
    relative_robustness,
)
from beaufort.testbed.testbed_page import to_page, write_page

pytest.importorskip("playwright", reason="playwright is not installed; the extra dev has it")
from playwright.sync_api import Page

from tests.commands import shows

EVIL = "</script><img src=x onerror=alert(1)>"
Opener = Callable[..., Page]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    rows = ("val,80.1,50000", "imagenetv2,72.0,10000", "unknown,3.0,")
    lines = [f'"{EVIL}",{row}' for row in rows]
    (folder / "mine.csv").write_text("\n".join(["model,setting,accuracy,n", *lines]))
    return write_page(load_grid(f"paper+{folder / 'mine.csv'}"), folder / "testbed.html")


@pytest.fixture(scope="module")
def timm_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(load_grid("timm"), tmp_path_factory.mktemp("page") / "timm.html", y="imagenet-r")


def choose(page: Page, setting: str, *, across: bool = False) -> None:
    page.select_option("#x" if across else "#y", label=setting)


PICTURE = """id => {
  const canvas = document.getElementById(id), blank = document.createElement('canvas');
  [blank.width, blank.height] = [canvas.width, canvas.height];
  const url = canvas.toDataURL();
  return url === blank.toDataURL() ? '' : url;
}"""


def test_the_fits_are_those_of_the_library(show: Opener, page_file: Path, paper: Grid) -> None:
    page = show(page_file)
    for title, shift in (
        ("ImageNetV2", "imagenetv2"),
        ("ObjectNet", "objectnet"),
        ("mean over PGD attacks", "avg_pgd"),
    ):
        choose(page, title)
        line = fit_shift(paper, shift)
        assert isinstance(line, Line)
        text = page.inner_text("#fit-text").replace("−", "-")
        ends, _ = coefficient_intervals(line)
        assert f"slope {line.slope:.3f} [{ends.low:.3f}, {ends.high:.3f}]" in text
        assert f"intercept {line.intercept:.3f}, r² {line.r2:.2f}, n {line.n}" in text
    choose(page, "ImageNet-A")
    knee = fit_shift(paper, "imagenet-a")
    assert isinstance(knee, Knee)
    text = page.inner_text("#fit-text").replace("−", "-")
    for side in (knee.left, knee.right):
        ends, _ = coefficient_intervals(side)
        assert f"slope {side.slope:.3f} [{ends.low:.3f}, {ends.high:.3f}]" in text
        assert f"n {side.n}" in text
    choose(page, "ImageNetV2")
    for scale in ("linear", "probit"):
        page.select_option("#scale", scale)
        line = fit_shift(paper, "imagenetv2", scale=scale)
        assert isinstance(line, Line)
        text = page.inner_text("#fit-text").replace("−", "-")
        assert f"slope {line.slope:.3f} [" in text
        assert f"intercept {line.intercept:.3f}" in text
    page.select_option("#fit", label="all models (205)")
    line = fit_shift(load_grid("paper", fit_on=["all"]), "imagenetv2", scale="probit")
    assert isinstance(line, Line)
    text = page.inner_text("#fit-text")
    assert "fitted on all models" in text
    assert f", n {line.n + 1}" in text  # and the model of one's own


def test_rho_and_intervals_are_those_of_the_library(show: Opener, page_file: Path, paper: Grid) -> None:
    page = show(page_file)
    page.fill("#search", "resnet152-imagenet11k")
    text = page.inner_text("#found").replace("−", "-")
    assert "ρ = +2.09 points" in text
    row = paper.row_of["resnet152-imagenet11k"]
    for setting in ("val", "imagenetv2"):
        value, n = paper.column(setting)[[row]], paper.images(setting)[[row]]
        low, high = accuracy_intervals(value, n)
        assert f"{value[0]:.2f} % [{low[0]:.2f}, {high[0]:.2f}]" in text
    assert page.locator("#table tbody tr:not(.chosen)").count() == 1
    for shift, label in (
        ("imagenetv2", "ImageNetV2"),
        ("imagenet-a", "ImageNet-A"),
        ("sketch", "ImageNet-Sketch"),
    ):
        choose(page, label)
        (one,) = effective_robustness(paper, shift, select=["resnet152-imagenet11k"]).models
        assert one.percentile is not None
        shown = re.search(r"percentile among fitted models: ([\d.]+), (\w+)", page.inner_text("#found"))
        assert shown is not None
        assert float(shown[1]) == pytest.approx(min(max(one.percentile, 0.1), 99.9), abs=0.06)
        assert shown[2] == one.verdict
    choose(page, "ImageNetV2")
    page.fill("#search", "instagram")
    assert page.inner_text("#found") == "4 of 202 models"
    assert page.locator("#table tbody tr:not(.chosen)").count() == 4
    assert page.evaluate(PICTURE, "over")
    page.fill("#search", "")
    assert not page.evaluate(PICTURE, "over")


def test_hovering_shows_the_model(show: Opener, page_file: Path, paper: Grid) -> None:
    page = show(page_file)
    box = page.locator("#plot").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    assert page.locator("#tip").is_hidden()
    page.locator("#stage").scroll_into_view_if_needed()
    box = page.locator("#plot").bounding_box()
    assert box is not None
    for fraction in np.linspace(0.2, 0.98, 300):  # along the trend there are models
        page.mouse.move(box["x"] + fraction * box["width"], box["y"] + (1 - fraction) * box["height"] * 0.9)
        if page.locator("#tip").is_visible():
            break
    text = page.inner_text("#tip")
    assert re.search(r"ImageNet: [\d.]+ % \[[\d.]+, [\d.]+\]", text)
    assert text.splitlines()[0] in paper.models
    page.mouse.move(box["x"] + box["width"] + 30, box["y"])
    assert page.locator("#tip").is_hidden()


def test_any_two_settings(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    assert "too narrow" not in page.inner_text("#fit-text")
    assert page.locator("#y option").count() == 214 + 39
    before = page.evaluate(PICTURE, "plot")
    choose(page, "pgd.linf.eps2")
    assert page.input_value("#x") == page.locator(
        "#x option", has_text=re.compile("^ImageNet$")
    ).get_attribute("value")
    choose(page, "imagenet-c.fog.3_on-disk", across=True)
    assert "imagenet-c.fog.3_on-disk → pgd.linf.eps2" in page.inner_text("#fit-text")
    assert page.evaluate(PICTURE, "plot") not in {"", before}
    choose(page, "ObjectNet")
    assert "ImageNet (classes of ObjectNet) → ObjectNet" in page.inner_text("#fit-text")


def test_types_can_be_hidden(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    page.fill("#search", "instagram")
    page.click("#types button:has-text('more data')")
    assert shows(page.inner_text("#found"), "“instagram”", "172 models")
    page.click("#types button:has-text('more data')")
    assert page.inner_text("#found") == "4 of 202 models"


def test_the_own_model_is_there_and_harmless(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    assert page.locator("tr.chosen th").all_inner_texts() == [f"★ {EVIL}"]
    assert page.locator("main img").count() == 0
    choose(page, "ObjectNet")
    assert page.locator("tr.chosen").count() == 0


def test_the_row_of_the_own_model_stays_on_top(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    assert shows(page.inner_text(".sentence"), EVIL, "more robust", "clean accuracy", "one natural shift")
    for order in ("lowest first", "highest first"):
        page.click(f"button:has-text('{order}')")
        assert EVIL in page.locator("#table tbody th").first.inner_text()
    page.fill("#search", "resnet50_swsl")
    assert page.locator("#table tbody tr").count() == 2


def test_effective_and_relative_robustness(show: Opener, page_file: Path, paper: Grid) -> None:
    page = show(page_file)
    page.select_option("#show", "tau")
    page.fill("#search", "resnet50_linf_eps8_robust")
    (one,) = relative_robustness(paper, "imagenetv2", select=["resnet50_linf_eps8_robust"]).models
    text = page.inner_text("#found").replace("−", "-")
    assert f"τ = {one.tau:.2f} points over {one.pair.base}" in text
    assert len(page.evaluate("location.hash")) > 5
    assert "show=tau" in page.evaluate("location.hash")


def test_the_address_keeps_the_view(show: Opener, browse: Opener, page_file: Path) -> None:
    page = show(page_file)
    choose(page, "ImageNet-Sketch")
    page.select_option("#scale", "probit")
    page.click("#types button:has-text('more data')")
    page.check("#bars")
    page.fill("#search", "resnet")
    page.click("button:has-text('Zoom in')")
    address = page.evaluate("location.hash")
    for part in ("y=imagenet-sketch", "axes=probit", "hidden=", "bars=1", "search=resnet", "zoom="):
        assert part in address
    again = browse(page_file.as_uri() + address)
    assert again.evaluate("location.hash") == address
    assert again.inner_text("#found") == page.inner_text("#found")
    assert again.is_checked("#bars")
    for one in (page, again):
        one.uncheck("#bars")
    picture = page.evaluate(PICTURE, "plot")
    assert again.evaluate(PICTURE, "plot") == picture
    page.click("button:has-text('All models')")
    assert "zoom=" not in page.evaluate("location.hash")
    assert page.evaluate(PICTURE, "plot") != picture


def test_a_rectangle_zooms(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    page.locator("#stage").scroll_into_view_if_needed()
    box = page.locator("#plot").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 260)
    page.mouse.up()
    assert "zoom=" in page.evaluate("location.hash")
    page.mouse.dblclick(box["x"] + 200, box["y"] + 60)
    assert "zoom=" not in page.evaluate("location.hash")


def test_what_is_shown_can_be_saved(show: Opener, page_file: Path, paper: Grid, tmp_path: Path) -> None:
    page = show(page_file)
    saved = {}
    for kind in ("csv", "svg"):
        with page.expect_download() as download:
            page.click(f"button[data-do={kind}]")
        saved[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[kind])
    with saved["csv"].open(newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    assert len(rows) == 202
    assert rows[EVIL]["y"] == "72"
    (one,) = effective_robustness(paper, "imagenetv2", select=["resnet152-imagenet11k"]).models
    row = rows[one.model]
    assert [float(row["rho"]), float(row["x"])] == pytest.approx([one.rho, one.clean])
    assert (row["x_n"], row["y_n"], row["fit_on"]) == ("50000", "10000", "the testbed's 78 standard models")
    assert float(row["percentile"]) == pytest.approx(one.percentile, abs=0.01)
    low, high = accuracy_intervals([one.shifted], [10_000])
    assert [float(row["y_low"]), float(row["y_high"])] == pytest.approx([low[0], high[0]])
    root = ElementTree.parse(saved["svg"]).getroot()
    assert sum(1 for _ in root.iter(f"{SVG}circle")) == 201
    assert EVIL[:39] in " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
    assert not list(root.iter(f"{SVG}script"))


def test_correlations(show: Opener, page_file: Path, paper: Grid) -> None:
    page = show(page_file)
    assert page.locator("#cells button").count() == 45 * 9
    page.locator("#cells tr", has_text="mean over PGD attacks").locator("button").nth(4).click()
    found = correlate(paper, "avg_pgd", "vid-robust-pm10")
    text = page.inner_text("#pair-text")
    assert f"+{found.pearson:.2f}" in text
    assert f"{found.n} models" in text
    assert page.evaluate(PICTURE, "plot2")


def test_timm_has_no_correlations(show: Opener, timm_file: Path) -> None:
    page = show(timm_file)
    assert page.locator("#correlation").count() == 0
    assert page.locator("#fits-table tbody tr").count() == 6


def test_light_and_dark(show: Opener, page_file: Path) -> None:
    color = "getComputedStyle(document.body).backgroundColor"
    light, dark = (show(page_file, color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(color) != dark.evaluate(color)
    dark.click("#theme")
    assert dark.evaluate(color) == light.evaluate(color)


def test_a_phone_does_not_scroll_sideways(show: Opener, page_file: Path, timm_file: Path) -> None:
    for path in (page_file, timm_file):
        page = show(path, viewport={"width": 390, "height": 800})
        for width in (390, 320, 768):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)


def test_without_scripts_there_is_a_figure(show: Opener, page_file: Path) -> None:
    page = show(page_file, java_script_enabled=False)
    assert page.locator(".without-script svg").is_visible()
    assert page.locator("#fits-table").is_visible()
    assert page.locator(".controls").is_hidden()


COSTS = """([id, value, kind, times]) => {
  let drawn = 0;
  const pen = CanvasRenderingContext2D.prototype, own = Object.getOwnPropertyDescriptors(pen);
  for (const [name, { value: draw }] of Object.entries(own)) {
    if (typeof draw !== 'function') continue;
    pen[name] = function (...given) { drawn += 1; return draw.apply(this, given); };
  }
  const observer = new MutationObserver(() => {});
  observer.observe(document, { attributes: true, childList: true, subtree: true });
  const element = document.querySelector(id), box = element.getBoundingClientRect();
  for (let i = 0; i < times; i += 1) {
    const [x, y] = [box.left + box.width * (0.3 + 0.006 * i), box.top + box.height * (0.7 - 0.005 * i)];
    if (kind === 'pointermove') element.dispatchEvent(new PointerEvent(kind, { clientX: x, clientY: y }));
    else { element.value = value; element.dispatchEvent(new Event(kind, { bubbles: true })); }
  }
  Object.defineProperties(pen, own);
  const nodes = (one) => one.addedNodes.length + one.removedNodes.length;
  return [drawn, observer.takeRecords().reduce((sum, one) => sum + 1 + nodes(one), 0)];
}"""
"""How much an action draws, and how much of the page it touches: what it costs, on a machine of any speed."""


def test_thousands_of_models_are_smooth(show: Opener, timm_file: Path) -> None:
    page = show(timm_file)

    def costs(*words: str, times: int = 1) -> tuple[int, int]:
        drawn, touched = page.evaluate(COSTS, [*words, times])
        return int(drawn), int(touched)

    for setting in ("1", "2", "3"):
        for words in (
            ("#y", setting, "change"),
            ("#search", "resnet", "input"),
            ("#search", "", "input"),
            ("#scale", "linear", "change"),
            ("#scale", "logit", "change"),
        ):
            drawn, touched = costs(*words)
            assert drawn < 4000, words
            assert touched < 300, words
    drawn, touched = costs("#plot", "", "pointermove", times=100)
    assert 0 < drawn < 20 * 100, "what is pointed at is drawn over the rest, which stays"
    assert 0 < touched < 10 * 100


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of 5,000 models."""
    folder, rng = tmp_path_factory.mktemp("large"), np.random.default_rng(0)
    val = rng.uniform(40, 92, 5000)
    shifted = np.clip(val - 12 + rng.normal(0, 2, 5000), 1, 99)
    sketch = np.clip(val - 40 + rng.normal(0, 5, 5000), 1, 99)
    lines = [
        f"net-{i},{'STANDARD' if i % 3 else 'MORE_DATA'},{a:.3f},{b:.3f},{c:.3f}"
        for i, (a, b, c) in enumerate(zip(val, shifted, sketch, strict=True))
    ]
    header = "model,type,val,imagenetv2-matched-frequency-format-val,imagenet-sketch"
    (folder / "large.csv").write_text("\n".join([header, *lines]))
    return write_page(load_grid(folder / "large.csv"), folder / "large.html")


def test_five_thousand_models_stay_fluid(show: Opener, large_file: Path) -> None:
    """Work is counted in drawing calls, which are the same on every machine."""
    page = show(large_file)
    for words in (
        ("#y", "2", "change"),
        ("#search", "net-1", "input"),
        ("#search", "net-12", "input"),
        ("#scale", "probit", "change"),
    ):
        drawn, touched = page.evaluate(COSTS, [*words, 1])
        assert drawn < 3 * 5000, words
        assert touched < 300, words
    page.fill("#search", "")
    drawn, _ = page.evaluate(COSTS, ["#plot", "", "pointermove", 100])
    assert drawn < 20 * 100


def test_equal_input_gives_equal_bytes(paper: Grid) -> None:
    assert to_page(paper) == to_page(paper)


def test_names_of_a_file_are_harmless(show: Opener, tmp_path: Path) -> None:
    path = tmp_path / "<b>grid.csv"
    rows = [f"{EVIL}{i},{60 + 5 * i},{50 + 6 * i}" for i in range(5)]
    path.write_text("\n".join(["model,<i>clean,<u>shifted", *rows]) + "\n")
    page = show(write_page(load_grid(path), tmp_path / "page.html", y="<u>shifted", x="<i>clean"))
    assert page.locator("#table tbody th").count() == 5
    assert page.locator("#table tbody th").first.inner_text().startswith(EVIL)
    assert page.locator("main img, main b, h1 b, main u, h1 i").count() == 0
    assert "<b>grid" in page.inner_text("h1")


def test_small_grids_have_a_page(show: Opener, small: Path) -> None:
    page = show(write_page(load_grid(small), small.parent / "small.html", y="shifted", x="clean"))
    assert "slope 0.900" in page.inner_text("#fit-text")
    assert "10 models" in page.inner_text("#fit-text")
    assert "(" not in page.locator("#table tbody").inner_text()


def test_gaps_and_ends_are_shown(show: Opener, tmp_path: Path, paper: Grid) -> None:
    """A pair that too few models have is a dash; 0 % is at the edge of the figure, not under it."""
    sketch, style = (paper.column(name).copy() for name in ("imagenet-sketch", "stylized_imagenet"))
    sketch[paper.groups["not-standard"] & ~paper.groups["resnet50-lp"]] = np.nan
    sketch[paper.row_of["resnet50"]] = 0.0
    style[paper.groups["resnet50-lp"]] = np.nan
    values = {**paper.values, "imagenet-sketch": sketch, "stylized_imagenet": style}
    page = show(write_page(replace(paper, values=values), tmp_path / "gaps.html"))
    page.wait_for_selector("#cells button")
    dashes = page.locator("#cells td", has_text=re.compile("^–$"))
    assert dashes.count() == 2  # sketches with stylized images, and with the mean that includes them
    choose(page, "ImageNet-Sketch")
    page.locator("#over").scroll_into_view_if_needed()
    box = page.locator("#over").bounding_box()
    assert box is not None
    text = None
    for x in range(int(0.6 * box["width"]), int(box["width"]) - 16, 20):
        page.mouse.move(box["x"] + x, box["y"] + box["height"] - 46)  # the lower edge
        text = page.locator("#tip").text_content()
        if text and "Sketch: 0.00 %" in text:
            break
    assert text is not None
    assert text.startswith("resnet50\n")

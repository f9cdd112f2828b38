"""The page in a real browser: Debian's chromium, driven by playwright."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from beaufort.data import Dataset
from beaufort.models import as_model
from beaufort.report import examples_of_data, examples_of_images, write_report
from beaufort.report.figure_numbers import pair_differences
from beaufort.results import Scores, open_results
from beaufort.suites import get_suite

pytest.importorskip("playwright", reason="playwright is not installed; the extra dev has it")
from playwright.sync_api import Page

from tests.commands import shows


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory, scores: Scores, data: Dataset) -> Path:
    return write_report(
        scores, tmp_path_factory.mktemp("page") / "report.html", examples=examples_of_data(scores, data)
    )


Opener = Callable[..., Page]


def texts(page: Page, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def test_every_figure_is_drawn(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    for figure in ("heatmap", "curves", "bars", "calibration", "examples", "mistakes", "classes"):
        assert page.locator(f"#{figure}-figure > *").count(), figure
    assert page.locator("#map td.heat").count() == 1 + 3 * 4
    assert page.locator("#curves-figure .panel").count() == 4
    assert page.locator("#examples-figure img").count() == 3 + 9
    broken = "images => images.filter(one => one.complete && !one.naturalWidth).length"
    assert page.locator("img").evaluate_all(broken) == 0
    assert page.locator("img:not([alt]), img[alt='']").count() == 0


def test_one_image_is_one_image(show: Opener, tmp_path: Path, make: SimpleNamespace) -> None:
    scores = make.scored(make.results_of(["net"], make.suite, 1))
    page = show(write_report(scores, tmp_path / "report.html"))
    assert "n = 1 image, 15 bins" in page.inner_text("#calibration-figure")


def test_names_are_shown_as_they_are(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    names = texts(page, "#classes-table tbody th")
    assert sorted(names) == sorted(["polar bear", 'cat "Tom"', "</script><b>dog", "fish & chips"])


def test_the_model_can_be_changed(show: Opener, page_file: Path, scores: Scores) -> None:
    page = show(page_file)
    before = texts(page, "#map td.heat")
    sentence = page.inner_text("#sentence")
    page.select_option("#model", label="bad")
    assert texts(page, "#map td.heat") != before
    assert page.inner_text("#sentence") != sentence
    bad = next(model for model in scores.models if model.model == "bad")
    means = [f"{100 * error.value:.0f}" for error in bad.corruptions.values()]
    assert texts(page, "#map td.mean") == means
    assert page.locator("tr.chosen").first.get_attribute("data-m") == "2"
    assert " bad " in page.inner_text("#mistakes-figure")
    page.click("#ranking-table .pick >> nth=0")
    assert texts(page, "#map td.heat") == before
    page.select_option("#compare", label="middling")
    assert page.locator("#map2 td.heat").count() == 1 + 3 * 4
    assert page.locator("#curves-figure .two").count() >= 4


def test_filters_filter(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    page.fill("#filter", "fog")
    visible = "elements => elements.filter(one => one.offsetParent).map(one => one.innerText.trim())"
    rows = page.locator("#map tbody tr[data-c] th").evaluate_all(visible)
    assert [re.split(r"\s{2,}|\n|weather", row)[0].strip() for row in rows] == ["fog"]
    heads = page.locator("#all-table thead th").evaluate_all(visible)
    assert [head.strip() for head in heads] == ["Model", "clean", "fog"]
    assert page.locator("#curves-figure .panel:visible").count() == 2
    page.select_option("#model", label="bad")
    assert page.locator("#bars-figure .bar[data-c]:visible").count() == 1
    page.fill("#filter", "noise, contrast")
    assert page.locator("#map tbody tr[data-c]:visible").count() == 2
    page.fill("#filter", "")
    assert page.locator("#map tbody tr[data-c]:visible").count() == 3
    page.fill("#model-filter", "MID")
    assert texts(page, "#ranking-table tbody tr:visible th") == ["middling"]
    assert page.inner_text("#model-count") == "1 of 3"


def test_tables_sort_by_click_and_by_key(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    assert texts(page, "#ranking-table tbody th") == ["good", "middling", "bad"]
    head = page.locator("#ranking-table thead th", has_text="Model")
    head.locator("button").click()
    assert texts(page, "#ranking-table tbody th") == ["bad", "good", "middling"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").press("Enter")
    assert texts(page, "#ranking-table tbody th") == ["middling", "good", "bad"]
    assert head.get_attribute("aria-sort") == "descending"
    accuracy = page.locator("#ranking-table thead th", has_text="Mean accuracy")
    accuracy.locator("button").press(" ")
    assert texts(page, "#ranking-table tbody th") == ["good", "middling", "bad"]
    assert head.get_attribute("aria-sort") == "none"


def test_keys_reach_everything(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.wait_for_selector("#main:focus")
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.closest('section, nav, .controls, header')?.id"))
    assert {"ranking", "heatmap", "curves", "bars"} <= reached
    page.locator("#map td.heat[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    output = page.inner_text("#tip")
    assert re.search(r"gaussian noise, severity 3\nerror [\d.]+.% \[[\d.]+, [\d.]+\]", output)
    assert "n = 60 images" in output
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_light_and_dark(show: Opener, page_file: Path) -> None:
    color = "getComputedStyle(document.body).backgroundColor"
    light, dark = (show(page_file, color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(color) != dark.evaluate(color)
    assert (light.inner_text("#theme"), dark.inner_text("#theme")) == ("Dark", "Light")
    dark.click("#theme")
    assert dark.evaluate(color) == light.evaluate(color)
    light.click("#theme")
    assert light.evaluate(color) != dark.evaluate(color)


CONTRAST = """() => [...document.querySelectorAll('.scale b')].map((b) => {
  const luminance = (text) => {
    const [red, green, blue] = (() => {
      const canvas = document.createElement('canvas').getContext('2d');
      canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
      return canvas.getImageData(0, 0, 1, 1).data;
    })();
    const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  };
  b.classList.toggle('deep', Number(b.style.getPropertyValue('--v')) >= 0.62);
  const style = getComputedStyle(b);
  const [a, c] = [luminance(style.color), luminance(style.backgroundColor)].sort((x, y) => y - x);
  return (a + 0.05) / (c + 0.05);
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_can_be_read_on_every_color(show: Opener, page_file: Path, scheme: str) -> None:
    assert min(show(page_file, color_scheme=scheme).evaluate(CONTRAST)) >= 4.5


def test_a_phone_does_not_scroll_sideways(
    show: Opener, page_file: Path, large_file: Path, digits: tuple[Scores, Dataset], tmp_path: Path
) -> None:
    scores, data = digits
    other = write_report(scores, tmp_path / "digits.html", examples=examples_of_data(scores, data))
    for path in (page_file, large_file, other):
        page = show(path, viewport={"width": 360, "height": 800})
        for width in (360, 320, 390, 768):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)


def test_without_scripts_there_are_tables(show: Opener, page_file: Path) -> None:
    page = show(page_file, java_script_enabled=False)
    assert page.locator("#ranking-table").is_visible()
    assert page.locator("#all-table").is_visible()
    assert page.locator("#made").is_visible()
    assert page.locator("noscript").first.is_visible()
    assert page.locator(".controls").is_hidden()


def test_one_severity_has_no_curves(show: Opener, digits: tuple[Scores, Dataset], tmp_path: Path) -> None:
    scores, data = digits
    page = show(write_report(scores, tmp_path / "r.html", examples=examples_of_data(scores, data)))
    assert page.locator("#curves").count() == 0
    assert page.locator("#examples-figure .strip").count() == 15
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.shot img')).imageRendering") == "pixelated"
    )
    assert re.search(r".+ \(true.", page.inner_text("#mistakes-figure"))
    page.locator("#all-table td.heat").nth(1).hover()
    assert "shot noise" in page.inner_text("#tip")


def test_predictions_of_any_model_can_be_shown(show: Opener, scores: Scores, tmp_path: Path) -> None:
    def always(label: int) -> Any:
        row = np.eye(4, dtype=np.float32)[label]
        return as_model(
            lambda shown: row[None].repeat(len(shown), 0), name=f"n{label}", classes=4, version=str(label)
        )

    examples = examples_of_images(scores, predict_with=[always(0), always(3)])
    page = show(write_report(scores, tmp_path / "r.html", examples=examples))
    assert "polar bear" in page.inner_text("#examples-figure .strip >> nth=0")
    page.click("button[data-voice='1']")
    assert "fish & chips" in page.inner_text("#examples-figure .strip >> nth=0")
    assert "predictions of n3" in page.inner_text("#examples-figure")
    assert "--data" in page.inner_text("#mistakes")


def test_two_models_are_compared(show: Opener, page_file: Path, scores: Scores) -> None:
    page = show(page_file)
    assert "Choose a model" in page.inner_text("#comparison-figure")
    page.select_option("#compare", label="bad")
    rows = page.locator("#comparison-table tbody tr")
    assert rows.count() == 1 + 3
    found = scores.pairs.difference("mean_accuracy", "good", "bad")
    assert found.difference.value < 0
    higher = -found.difference
    ends = f"[{100 * higher.low:.1f}, {100 * higher.high:.1f}]"
    first = rows.nth(0).inner_text()
    assert f"{100 * higher.value:.1f} higher {ends}" in first
    assert ("good is better" in first) == found.significant
    under = pair_differences(scores)[0, 2].corruptions
    for row, difference in zip(rows.all()[1:], under, strict=True):
        significant = difference.low > 0 or difference.high < 0
        assert ("is better" in row.inner_text()) == significant
        assert ("not significant" in row.inner_text()) != significant
    sentence = page.inner_text("#comparison-sentence")
    assert shows(sentence, "good", f"{100 * higher.value:.1f} points higher", "mean accuracy", f"bad {ends}")
    page.select_option("#model", label="bad")
    page.select_option("#compare", label="good")
    turned = rows.nth(0).inner_text()
    assert f"{100 * higher.value:.1f} lower {ends}" in turned
    assert ("good is better" in turned) == found.significant
    assert page.inner_text("#comparison-sentence") != sentence


def test_many_models_are_compared_without_intervals(show: Opener, large_file: Path) -> None:
    page = show(large_file)
    page.select_option("#compare", index=5)
    assert "no intervals of differences" in page.inner_text("#comparison-sentence")
    assert page.locator("#comparison-table tbody tr").count() > 15
    assert "is better" not in page.inner_text("#comparison-table")


def test_choices_are_kept_in_the_url(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    page.select_option("#model", label="middling")
    page.select_option("#compare", label="bad")
    page.click("button[data-order='worst']")
    page.click("button[data-measure='accuracy']")
    page.fill("#filter", "fog & co")
    before = {name: page.inner_text(name) for name in ("#sentence", "#comparison-sentence", "#map")}
    address = page.evaluate("location.href")
    again = show(page_file)
    again.goto(address)
    assert {name: again.inner_text(name) for name in before} == before
    assert again.input_value("#filter") == "fog & co"
    assert again.input_value("#model") == page.input_value("#model")
    assert again.locator("button[data-order='worst']").get_attribute("aria-pressed") == "true"
    again.goto(f"{page_file.as_uri()}?model=nobody&compare=<b>&measure=x")
    assert again.input_value("#model") == "0"
    assert again.input_value("#compare") == "-1"


def test_search_without_a_match_is_reported(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    page.fill("#filter", "hail")
    assert "hail" in page.inner_text("#filter-count")
    page.fill("#filter", "fog")
    assert page.inner_text("#filter-count") == ""
    page.fill("#model-filter", "nobody")
    assert "nobody" in page.inner_text("#model-count")


def test_distances_are_true_to_severity(show: Opener, page_file: Path) -> None:
    """Clean images, then the severities 1, 3 and 5."""
    page = show(page_file)
    across = "dots => dots.map(dot => Number(dot.getAttribute('cx')))"
    for figure, panel in (("curves", 0), ("calibration", 1)):
        dots = page.locator(f"#{figure}-figure .panel").nth(panel).locator("circle.point1")
        steps = [b - a for a, b in pairwise(dots.evaluate_all(across))]
        assert steps == pytest.approx([steps[0], 2 * steps[0], 2 * steps[0]], abs=0.5), figure


def test_a_table_that_scrolls_has_a_sign(show: Opener, page_file: Path) -> None:
    page = show(page_file, viewport={"width": 390, "height": 800})
    box = page.locator("#ranking .scroll")
    sign = page.locator("#ranking .scrolls")
    assert sign.inner_text() == "Scroll for more: →"
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    sign.wait_for(state="hidden")
    wide = show(page_file, viewport={"width": 1280, "height": 900})
    assert wide.locator("#ranking .scrolls").count() == 0


WORDS = """() => {
  const broken = [];
  for (const caption of document.querySelectorAll('figcaption, .tile dt, .sentence, thead th')) {
    const walker = document.createTreeWalker(caption, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const match of node.data.matchAll(/[^\\s\\u00a0\\u2192-]+/g)) {
        const range = document.createRange();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
        if (lines.size > 1) broken.push(match[0]);
      }
    }
  }
  return broken;
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_captions_do_not_break_inside_words(
    show: Opener, make: SimpleNamespace, tmp_path: Path, width: int
) -> None:
    long = ("hippopotamus", "photosynthesizing_rhinoceros", "antidisestablishmentarian", "cat")
    data = make.dataset()
    named = replace(data, classes=long)
    make.fill(tmp_path / "store", named)
    scores = make.scored(open_results(str(tmp_path / "store")))
    renamed = replace(examples_of_data(scores, named), classes=long)
    page = show(
        write_report(scores, tmp_path / "r.html", examples=renamed), viewport={"width": width, "height": 800}
    )
    assert page.locator("#mistakes-figure figcaption").count() > 3
    assert page.evaluate(WORDS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_exact_words_are_a_click_away(show: Opener, page_file: Path) -> None:
    page = show(page_file)
    assert "max-T" not in page.inner_text("#ranking")
    page.click("#ranking .exact summary")
    assert "max-T" in page.inner_text("#ranking")
    assert "half of the clean" in page.inner_text("#heatmap aside")


TOUCHED = """([id, value, kind]) => {
  const observer = new MutationObserver(() => {});
  observer.observe(document, { attributes: true, childList: true, subtree: true });
  const element = document.querySelector(id);
  if (kind === 'click') element.click();
  else { element.value = value; element.dispatchEvent(new Event(kind, { bubbles: true })); }
  const nodes = (one) => one.addedNodes.length + one.removedNodes.length;
  return observer.takeRecords().reduce((sum, one) => sum + 1 + nodes(one), 0);
}"""
"""How much of a page an action touches: what it costs, on a machine of any speed."""


def test_a_hundred_models_are_smooth(show: Opener, large_file: Path) -> None:
    page = show(large_file)
    assert page.locator("#all-table tbody tr").count() == 100

    def touched(*words: str) -> int:
        return int(page.evaluate(TOUCHED, list(words)))

    assert touched("#filter", "blur", "input") < 300
    assert page.locator("#map tbody tr[data-c]:visible").count() == 4
    assert touched("#filter", "", "input") < 300
    assert touched("#model-filter", "07", "input") < 500
    assert page.locator("#ranking-table tbody tr:visible").count() == 11
    assert touched("#model-filter", "", "input") < 500
    assert touched("#all-table thead th:nth-child(4) button", "", "click") < 500
    assert 0 < touched("#model", "57", "change") < 5000


def test_numbers_are_rounded_as_in_other_formats(show: Opener, make: SimpleNamespace, tmp_path: Path) -> None:
    """Halves are rounded to even everywhere: 12.5 % is the same in the table and in the heat map."""
    scores = make.scored(make.results_of(["net"], get_suite("imagenet-c"), 400))
    page = show(write_report(scores, tmp_path / "halves.html"))
    accuracies = [one for condition, one in scores.models[0].conditions.items() if not condition.clean]
    shown = page.locator("#map tr[data-c] td.heat:not(.mean)").all_inner_texts()
    assert shown == [f"{100 * (1 - one.value):.0f}" for one in accuracies]
    assert any(200 * one.value % 2 == 1 for one in accuracies)  # halves are among them
    tips = page.locator("#map td.mean").evaluate_all("cells => cells.map((cell) => cell.dataset.tip)")
    errors = [f"error {error:.1%}" for error in scores.models[0].corruptions.values()]
    assert [tip.splitlines()[1].replace("\u00a0", " ") for tip in tips] == errors
    tips = page.locator("#map td:not(.mean)").evaluate_all("cells => cells.map((cell) => cell.dataset.tip)")
    messages = [tip.splitlines()[2].replace("\u00a0", " ") for tip in tips if "severity" in tip]
    assert any(f"{100 * one.value:.2f}".endswith("25") for one in accuracies)
    assert messages == [f"accuracy {one:.1%}" for one in accuracies]

"""The board: what it ranks, links, and leaves out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort._core.errors import OptionError
from beaufort.report import to_csv, write_board
from beaufort.report.board import corrupted_accuracy
from beaufort.results import join_results, open_results, publish, score, verify_bundle
from beaufort.suites import Suite
from beaufort.testbed import fit_accuracies
from tests.commands import invoke, shows
from tests.conftest import fill_store

SUITE = Suite(
    name="few",
    version=1,
    title="A few corruptions",
    dataset="digits",
    scale="mnist",
    corruptions=("fog", "stripe", "scale"),
    severities=(1, 3),
    metrics=("mean_accuracy",),
)
HOSTILE = "</script><b>net"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("board")
    fill_store(root / "one", {"good": 0.9, "middling": 0.7, HOSTILE: 0.5}, suite=SUITE, images=200)
    fill_store(root / "two", {"best": 0.95, "worst": 0.3}, suite=SUITE, images=200, luck=1)
    fill_store(root / "alone", {"net": 0.6}, suite="mnist-c", images=40)
    publish(root / "one", root / "bundles" / "lab" / "one", title="Lab one")
    publish(root / "two", root / "bundles" / "two", probabilities=False)
    publish(root / "alone", root / "bundles" / "alone")
    return root / "bundles"


@pytest.fixture(scope="module")
def site(bundles: Path) -> Path:
    made = write_board(bundles, bundles.parent / "site", title="Ours", fit=fit_accuracies)
    assert (made.tables, made.models, made.bundles) == (2, 6, ("alone", "lab/one", "two"))
    return made.folder


def test_models_of_several_bundles_are_ranked_together(bundles: Path, site: Path) -> None:
    page = (site / "index.html").read_text()
    assert "<title>Ours</title>" in page
    table = page[page.index('id="few"') : page.index('id="bundles"')]
    names = [unescape(one) for one in re.findall(r'<th scope="row"><a href="[^"]+">([^<]+)</a>', table)]
    assert names == ["best", "good", "middling", HOSTILE, "worst"]
    joined = join_results([open_results(bundles / "lab" / "one"), open_results(bundles / "two")])
    scores = score(joined)
    assert (site / "few" / "scores.csv").read_text() == to_csv(scores)
    for one in scores.models:
        assert f"{100 * one.headline.value:.1f} <small>[{100 * one.headline.low:.1f}" in table


def test_effective_robustness_is_the_distance_to_the_trend(bundles: Path, site: Path) -> None:
    joined = join_results([open_results(bundles / "lab" / "one"), open_results(bundles / "two")])
    scores = score(joined, calibration=False)
    x = [100 * one.clean.value for one in scores.models if one.clean]
    shifted = [corrupted_accuracy(one, 0.95) for one in scores.models]
    y = [100 * one.value for one in shifted if one]
    by_hand = [
        100 * np.mean([e.value for condition, e in one.conditions.items() if not condition.clean])
        for one in scores.models
    ]
    assert y == pytest.approx(by_hand)
    rho = np.array(y) - fit_accuracies(x, y)(x).center
    page = (site / "index.html").read_text()
    trend = fit_accuracies(x, y)(x)
    outside = [
        one.model
        for one, value, low, high in zip(scores.models, y, trend.low, trend.high, strict=True)
        if not low <= value <= high
    ]
    assert ("No model is outside" in page) == (not outside)
    for value in rho:
        assert f'<td class="num">{value:+.1f}</td>' in page


def test_every_link_leads_to_a_file_and_nothing_is_external(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 1 + 2 + 6
    for page in pages:
        text = page.read_text()
        for link in re.findall(r'href="([^"]+)"', text):
            if not link.startswith(("#", "data:")):
                assert (page.parent / link.partition("#")[0]).is_file(), link
        assert not re.search(r'(?:src|href)="(?:https?:)?//', text)
        assert "<b>net" not in text
    assert 'href="../index.html#few"' in (site / "few" / "best.html").read_text()


def test_two_models_can_be_compared(site: Path) -> None:
    assert 'id="compare"' in (site / "few" / "index.html").read_text()


def test_a_forged_bundle_is_left_out(bundles: Path, tmp_path: Path) -> None:
    shutil.copytree(bundles, tmp_path / "bundles")
    path = tmp_path / "bundles" / "two" / "scores.csv"
    path.write_text(path.read_text().replace("worst", "first"))
    printed = invoke("board", str(tmp_path / "bundles"), "-o", str(tmp_path / "site"), code=1)
    assert shows(printed, "left out", "two", "scores.csv", "changed")
    assert shows(printed, "4 models", "2 bundles", "2 tables")
    page = (tmp_path / "site" / "index.html").read_text()
    assert "Left out" in page
    assert "worst" not in page
    shutil.rmtree(tmp_path / "bundles" / "alone")
    shutil.rmtree(tmp_path / "bundles" / "lab")
    with pytest.raises(OptionError, match="no valid bundle"):
        write_board(tmp_path / "bundles", tmp_path / "none")


def test_several_datasets_have_a_table(tmp_path: Path) -> None:
    from beaufort.results import evaluate
    from tests.results.test_bundle import toy, toys

    same = {"scale": "cifar", "corruptions": ["contrast"], "severities": [1]}
    parts = [{"dataset": "toys", **same}, {"dataset": "others", **same}]
    suite = Suite.from_dict({"name": "two", "version": 1, "title": "Two datasets", "parts": parts})
    data = {"toys": toys(), "others": toys()}
    evaluate([toy(), toy("other", 4)], suite, data, tmp_path / "store")
    publish(tmp_path / "store", tmp_path / "bundles" / "one")
    made = write_board(tmp_path / "bundles", tmp_path / "site", fit=fit_accuracies)
    page = (made.folder / "index.html").read_text()
    assert "Two datasets" in page
    assert (made.folder / "two-datasets" / "toy.html").is_file()
    assert (made.folder / "two-datasets" / "scores.csv").read_text().count("model,") == 1


CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const luminance = (text) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return [0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b), a];
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const [value, alpha] = luminance(getComputedStyle(one).backgroundColor);
      if (alpha === 255) return value;
    }
    return 1;
  };
  const low = [];
  for (const element of document.querySelectorAll('main *, header *, nav *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own) continue;
    const style = getComputedStyle(element);
    const [ink] = luminance(element.namespaceURI.endsWith('svg') ? style.fill : style.color);
    const [a, b] = [ink, behind(element)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(`${element.tagName} ${element.textContent.slice(0, 30)}`);
  }
  return low;
}"""


def test_the_board_in_a_browser(show: Callable[..., Any], site: Path) -> None:
    for scheme in ("light", "dark"):
        page = show(site / "index.html", viewport={"width": 390, "height": 800}, color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.locator("#few .plot circle").count() == 5
        assert page.evaluate(CONTRAST) == []
    page.locator("#few .plot a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/few/best.html")
    page.locator(".eyebrow a").click()
    page.wait_for_url("**/index.html#few")


BOARD = Path(__file__).parents[2] / "results" / "board"


@pytest.mark.parametrize("name", [path.name for path in sorted((BOARD / "bundles").iterdir())])
def test_the_bundles_of_the_project_are_sound(name: str) -> None:
    found = verify_bundle(BOARD / "bundles" / name)
    assert found.problems == ()
    assert found.digest in (BOARD / "pages" / "index.html").read_text()
    assert found.digest in (BOARD / "README.md").read_text()

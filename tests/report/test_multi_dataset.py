"""The page of a suite of several datasets, in a browser: one file with inner pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from beaufort import evaluate
from beaufort.data import from_arrays
from beaufort.models import as_model
from beaufort.report import to_text_of_several
from beaufort.suites import get_suite, parse_suite
from beaufort.testbed import shift_expectations
from beaufort.testing._contracts import example_image
from tests.commands import shows

SUITE = """
name: two
version: 1
title: Two <data> sets
parts:
  - dataset: toys
    title: Toys
    scale: cifar
    corruptions: [contrast, brightness]
    severities: [1, 5]
  - dataset: drawings
    title: Drawings
    counterpart: toys
"""


def test_inner_pages_draw_themselves(browser: Any, tmp_path: Path) -> None:
    images = np.stack([example_image(32, 32, variant=i) for i in range(40)])
    data = {name: from_arrays(name, images, labels=np.arange(40) % 5) for name in ("toys", "drawings")}
    net = as_model(
        lambda some: some.reshape(len(some), -1)[:, :5].astype(np.float32), name="net", classes=5, version="1"
    )
    found = evaluate([net], parse_suite(SUITE), data, tmp_path / "kept")
    page_file = tmp_path / "report.html"
    page_file.write_text(to_text_of_several(found.part_scores(), "html"), encoding="utf-8")
    page = browser.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(page_file.as_uri())
    assert page.locator("#shifts tbody tr").count() == 2
    inner = page.frame_locator("iframe").first
    inner.locator("svg").first.wait_for(state="attached")
    assert not wrong
    page.close()


def test_natural_shifts_are_described_in_words(make: SimpleNamespace) -> None:
    parts = get_suite("imagenetv2-matched-frequency").parts
    scores = []
    for part, wrong in zip(parts, (5, 7), strict=True):
        results = replace(make.results_of(["net", "other"], part, 4000), part_of="ImageNetV2")
        source = results.sources["net"]
        top = np.where(np.arange(4000)[None, :, None] % 20 < wrong, 0, source.labels[None, :, None])
        results.sources["net"] = replace(source, top=np.repeat(top, 2, axis=2).astype(np.int32))
        scores.append(make.scored(results))
    expectations = shift_expectations(scores)
    one = expectations["imagenetv2-matched-frequency", "net"]
    assert one.rho is not None
    assert one.expected is not None
    text = to_text_of_several(scores, "md", expectations=expectations)
    accuracies = [one.models[[m.model for m in one.models].index("net")].clean.value for one in scores]
    lost = 100 * (accuracies[0] - accuracies[1])
    assert shows(text, "net loses", f"{lost:.1f} points", "accuracy")
    assert f"lose {100 * (accuracies[0] - one.expected):.1f} points on average" in text
    assert f"{100 * one.rho.value:z.1f} points" in text
    assert one.percentile is not None
    assert f"the reference models, percentile {min(max(one.percentile, 0.1), 99.9):.1f}" in text
    assert "| ρ ↑ |" in text
    page = to_text_of_several(scores, "html", expectations=expectations)
    assert f'<p class="sentence">net loses {lost:.1f} points' in page
    assert "ρ" not in to_text_of_several(scores, "md")
    assert "rho" in to_text_of_several(scores, "latex", expectations=expectations)

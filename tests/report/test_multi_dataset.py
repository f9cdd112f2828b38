"""The page of a suite of several data sets, in a browser: one file, whose inner pages draw themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from beaufort import evaluate
from beaufort.data import from_arrays
from beaufort.models import as_model
from beaufort.report import to_text_of_several
from beaufort.suites import parse_suite
from beaufort.testing._contracts import example_image

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

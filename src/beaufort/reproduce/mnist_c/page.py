"""The study as one self-contained HTML page."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from beaufort.pages import render
from beaufort.report.provenance import Fact
from beaufort.reproduce.mnist_c.story import REHEARSAL, RULE, Story

__all__ = ["html_page"]

_KINDS = {"png": "image/png", "svg": "image/svg+xml"}


def html_page(story: Story, figures: Mapping[str, bytes]) -> str:
    """The text of the page; figures are part of it."""
    navigation = {"conclusions": "Conclusions", **{table.name: table.name for table in story.tables}}
    return render(
        "reproduce/mnist-c.html",
        styles=["reproduce/study.css"],
        title="MNIST-C, reproduced",
        eyebrow="reproduction",
        navigation={**navigation, "differences": "Where we differ", "figures": "Figures"},
        rehearsal=REHEARSAL if story.rehearsal else "",
        rule=RULE,
        claims=story.claims,
        tables=story.tables,
        why=story.why,
        over_all=story.over_all_text,
        noise=story.noise,
        differing=story.differing(),
        figures={name: _address(name, content) for name, content in figures.items()},
        facts=[Fact(key, (value,)) for key, value in story.facts.items()],
    )


def _address(name: str, content: bytes) -> str:
    return f"data:{_KINDS[name.rpartition('.')[2]]};base64,{base64.b64encode(content).decode()}"

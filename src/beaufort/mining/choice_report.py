"""How vision-language models did at two-way choices: a table, and a part of the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from beaufort.mining._page import PageCell, PageSection, share_cell
from beaufort.mining._tables import estimate_columns, estimate_values, write_table
from beaufort.mining.asking import ChoiceScores

_COLUMNS = {
    "accuracy": "accuracy",
    "coverage": "coverage",
    "right_when_first": "truth first",
    "right_when_second": "truth second",
    "position_bias": "position bias",
    "consistent": "same in both orders",
}
"""Attributes of `ChoiceScores`, and what they are called on the page."""


def write_choices(path: Path, choices: Mapping[str, ChoiceScores]) -> None:
    """Write a row for each model: what its answers named, and the estimates."""
    rows = [
        [
            *(model, one.images, one.questions),
            *(one.counts["right"], one.counts["wrong"], one.counts["both"], one.counts["neither"]),
            *(value for name in _COLUMNS for value in estimate_values(getattr(one, name))),
        ]
        for model, one in choices.items()
    ]
    counts = ("model", "images", "questions", "right", "wrong", "both", "neither")
    write_table(path, [*counts, *(column for name in _COLUMNS for column in estimate_columns(name))], rows)


def choices_section(choices: Mapping[str, ChoiceScores]) -> PageSection:
    """The same for the page."""
    return PageSection(
        "choices",
        "Two-way choice",
        "Vision-language models were asked which of two names the main object has: the intended one, or the "
        "wrong favorite of another model. Chance is 50 %. Coverage is the share of answers that name exactly "
        "one of the two; accuracy is among those. Position bias is how much more often the truth is named "
        "where it stands first.",
        ("Model", "images", *_COLUMNS.values()),
        tuple(
            (
                PageCell(model),
                PageCell(f"{one.images:,}"),
                *(share_cell(getattr(one, name)) for name in _COLUMNS),
            )
            for model, one in choices.items()
        ),
    )

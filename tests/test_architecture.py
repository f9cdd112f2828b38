"""The drawing and the table of docs/explanation/architecture.md are those of the import test's layers."""

from __future__ import annotations

import re

import architecture


def test_the_drawing_is_up_to_date() -> None:
    rows = architecture.layers()
    drawn = architecture.DRAWING.read_text(encoding="utf-8")
    assert drawn == architecture.drawing(rows), "run python tools/architecture.py"
    for name in (name for row in rows for name in row):
        assert f">{name}</text>" in drawn


def test_the_table_is_up_to_date() -> None:
    text = architecture.PAGE.read_text(encoding="utf-8")
    rows = architecture.layers()
    assert text == architecture.page(text, rows), "run python tools/architecture.py"
    assert len(re.findall(r"^\| \d \w+ \| `\w+` \|", text, re.MULTILINE)) == sum(map(len, rows))


def test_every_package_states_its_purpose() -> None:
    for row in architecture.layers():
        for name in row:
            assert len(architecture.purpose(name)) > 10, name

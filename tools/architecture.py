"""Draw the packages layer by layer, from the layers that the import test enforces.

`python tools/architecture.py` rewrites docs/assets/architecture.svg and the table of the architecture page.
"""

from __future__ import annotations

import ast
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "beaufort"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
DRAWING = ROOT / "docs" / "assets" / "architecture.svg"

_WIDTH, _TOP, _LEFT = 940, 34, 130
_HEIGHT, _GAP = 46, 12
"""Height of a layer, and the space between two."""
_TITLES = ("foundation", "pure", "inputs", "questions", "work", "results", "applications", "outside")
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #263238 }
  .name { font-weight: 600; text-anchor: middle }
  .note { fill: #607d8b }
  rect { fill: #eceff1; stroke: #90a4ae }
  path { stroke: #90a4ae; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #eceff1 } .note { fill: #90a4ae } rect { fill: #37474f; stroke: #78909c }
  }
"""


def layers() -> tuple[tuple[str, ...], ...]:
    """The table of the import test: a part imports from its own row and from rows above it."""
    sys.path.insert(0, str(ROOT))
    from tests.test_structure import LAYERS

    return LAYERS


def purpose(part: str) -> str:
    """The first line of a part's docstring."""
    file = SOURCE / part / "__init__.py"
    text = (file if file.exists() else SOURCE / f"{part}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0].removesuffix(".")


def drawing(rows: tuple[tuple[str, ...], ...]) -> str:
    """The layers from top to bottom, each package a box."""
    boxes: list[str] = []
    for number, (title, row) in enumerate(zip(_TITLES, rows, strict=True)):
        top = _TOP + number * (_HEIGHT + _GAP)
        boxes.append(f'<text class="note" x="24" y="{top + 28}">{number} {title}</text>')
        width = (_WIDTH - _LEFT - 10) / len(row)
        for place, name in enumerate(row):
            left = _LEFT + place * width
            boxes.append(f'<rect x="{left:g}" y="{top}" width="{width - 10:g}" height="{_HEIGHT}" rx="4"/>')
            middle = left + (width - 10) / 2
            boxes.append(f'<text class="name" x="{middle:g}" y="{top + 28}">{escape(name)}</text>')
    bottom = _TOP + len(rows) * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom}" role="img">',
        "<title>The packages of Beaufort: each imports from its own layer and from layers above it</title>",
        f"<style>{_STYLE}</style>",
        '<text class="note" x="24" y="20">imports go up</text>',
        f'<path d="M10 {bottom - _GAP} V{_TOP} m-4 8 l4 -8 l4 8"/>',
    ]
    return "\n".join([*parts, *boxes, "</svg>", ""])


def table(rows: tuple[tuple[str, ...], ...]) -> str:
    """Every package with its purpose, in the order of the layers."""
    lines = [
        f"| {number} {title} | `{name}` | {purpose(name).replace('|', chr(92) + '|')} |"
        for number, (title, row) in enumerate(zip(_TITLES, rows, strict=True))
        for name in row
    ]
    return "\n".join(["| layer | package | purpose |", "|---|---|---|", *lines])


def page(text: str, rows: tuple[tuple[str, ...], ...]) -> str:
    """The page with its table renewed."""
    pattern = re.compile(r"(?<=<!-- parts -->\n).*?(?=\n<!-- end of parts -->)", re.DOTALL)
    return pattern.sub(lambda _: table(rows), text)


if __name__ == "__main__":
    DRAWING.write_text(drawing(layers()), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), layers()), encoding="utf-8")

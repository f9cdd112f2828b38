"""Draw the parts of the package, layer by layer, from the table that the import test holds them to.

`python tools/architecture.py` renews docs/assets/architecture.svg and the table in docs/architecture.md.
"""

from __future__ import annotations

import ast
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "beaufort"
PAGE = ROOT / "docs" / "architecture.md"
DRAWING = ROOT / "docs" / "assets" / "architecture.svg"

_WIDTH, _TOP, _LEFT = 940, 34, 330
_LINE, _GAP = 28, 6
"""Height of a line of boxes, and what lies between two layers; lines of one layer touch."""
_ABREAST = 3
"""Boxes of a line; a layer with more parts has several lines."""
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
    """The layers from the first to the last, each part a box, with what its parts are for."""
    boxes: list[str] = []
    top = _TOP
    for row in rows:
        for first in range(0, len(row), _ABREAST):
            boxes += _line(row[first : first + _ABREAST], top)
            top += _LINE
        top += _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top + 8}" role="img">',
        "<title>The parts of Beaufort: each imports from its own layer and from layers above it</title>",
        f"<style>{_STYLE}</style>",
        '<text class="note" x="12" y="20">imports go up</text>',
        f'<path d="M6 {top - 2} V{_TOP} m-4 8 l4 -8 l4 8"/>',
    ]
    return "\n".join([*parts, *boxes, "</svg>", ""])


def _line(names: tuple[str, ...], top: int) -> list[str]:
    """Boxes side by side, and what is in them in a few words."""
    parts = []
    width = (_LEFT - 30) / len(names)
    for place, name in enumerate(names):
        left = 18 + place * width
        parts.append(f'<rect x="{left:g}" y="{top}" width="{width - 6:g}" height="26" rx="4"/>')
        middle = left + (width - 6) / 2
        parts.append(f'<text class="name" x="{middle:g}" y="{top + 18}">{escape(name)}</text>')
    told = purpose(names[0]) if len(names) == 1 else " · ".join(_short(name) for name in names)
    parts.append(f'<text class="note" x="{_LEFT}" y="{top + 18}">{escape(_cut(told))}</text>')
    return parts


def table(rows: tuple[tuple[str, ...], ...]) -> str:
    """Every part with what it is for, in the order of the layers."""
    lines = [f"| `{name}` | {purpose(name).replace('|', chr(92) + '|')} |" for row in rows for name in row]
    return "\n".join(["| part | what it is for |", "|---|---|", *lines])


def page(text: str, rows: tuple[tuple[str, ...], ...]) -> str:
    """The page with its table renewed."""
    pattern = re.compile(r"(?<=<!-- parts -->\n).*?(?=\n<!-- end of parts -->)", re.DOTALL)
    return pattern.sub(lambda _: table(rows), text)


def _short(name: str) -> str:
    return re.split(r"[:;,.]", purpose(name))[0]


def _cut(text: str, most: int = 88) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


if __name__ == "__main__":
    DRAWING.write_text(drawing(layers()), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), layers()), encoding="utf-8")

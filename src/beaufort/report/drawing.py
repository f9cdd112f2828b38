"""A drawing of lines, areas, points and text, written as SVG or PNG."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any

Point = tuple[float, float]

_FONT = "Helvetica, Arial, sans-serif"


@dataclass
class Drawing:
    """Shapes in the order in which they are drawn; units are pixels of the SVG."""

    width: float
    height: float
    shapes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def lines(
        self,
        lines: Sequence[Sequence[Point]],
        color: str,
        *,
        width: float = 1,
        dash: Sequence[float] = (),
        opacity: float = 1,
    ) -> None:
        """Add several open lines of one style."""
        kept = [list(line) for line in lines if len(line) > 1]
        if kept:
            look = {"color": color, "width": width, "dash": tuple(dash), "opacity": opacity}
            self.shapes.append(("lines", {"lines": kept, **look}))

    def area(self, points: Sequence[Point], color: str, *, opacity: float = 0.2) -> None:
        """Add a filled polygon."""
        self.shapes.append(("area", {"points": list(points), "color": color, "opacity": opacity}))

    def dots(
        self, points: Sequence[Point], color: str, *, radius: float = 2.6, opacity: float = 0.85
    ) -> None:
        """Add points of one style."""
        if points:
            look = {"color": color, "radius": radius, "opacity": opacity}
            self.shapes.append(("dots", {"points": list(points), **look}))

    def text(
        self,
        at: Point,
        text: str,
        *,
        size: float = 11,
        anchor: str = "start",
        color: str = "#222",
        bold: bool = False,
        upward: bool = False,
    ) -> None:
        """Add text; `upward` rotates it by 90 degrees."""
        look = {"size": size, "anchor": anchor, "color": color, "bold": bold, "upward": upward}
        self.shapes.append(("text", {"at": at, "text": text, **look}))

    def box(self, at: Point, size: Point, color: str) -> None:
        """Add a filled rectangle."""
        self.shapes.append(("box", {"at": at, "size": size, "color": color}))

    def svg(self) -> str:
        """Return the drawing as an SVG file."""
        body = "\n".join(_SVG[kind](**look) for kind, look in self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" font-family="{_FONT}">\n'
            f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
        )

    def png(self, scale: float = 2.0) -> bytes:
        """Return the drawing in pixels, `scale` per unit; text has the characters of Pillow's font."""
        from PIL import Image, ImageDraw

        fine = 2  # drawn twice as large and reduced, because Pillow does not smooth edges
        factor = scale * fine
        size = round(self.width * factor), round(self.height * factor)
        image = Image.new("RGB", size, "#fff")
        for kind, look in self.shapes:
            layer = ImageDraw.Draw(image, "RGBA")
            _PNG[kind](image, layer, factor, **look)
        image = image.resize(
            (round(self.width * scale), round(self.height * scale)), Image.Resampling.LANCZOS
        )
        file = io.BytesIO()
        image.save(file, "PNG", optimize=True)
        return file.getvalue()


def diverging(value: float) -> str:
    """Return a color for a number from -1 to 1: blue is negative, red positive, white 0.

    >>> diverging(0.0), diverging(-1.0)
    ('#ffffff', '#1a5fa8')
    """
    strong = (0x1A, 0x5F, 0xA8) if value < 0 else (0xB0, 0x3A, 0x10)
    return "#" + "".join(f"{round(255 + (part - 255) * min(abs(value), 1)):02x}" for part in strong)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)


def _svg_lines(
    lines: list[list[Point]], color: str, width: float, dash: tuple[float, ...], opacity: float
) -> str:
    dashes = f' stroke-dasharray="{" ".join(map(_n, dash))}"' if dash else ""
    faint = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
    path = "".join(map(_path, lines))
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"{dashes}{faint}/>'


def _svg_area(points: list[Point], color: str, opacity: float) -> str:
    return f'<path d="{_path(points)}Z" fill="{color}" fill-opacity="{opacity:g}"/>'


def _svg_dots(points: list[Point], color: str, radius: float, opacity: float) -> str:
    """Return points as round ends of lines of length 0: one path in place of one element per point."""
    path = "".join(f"M{_n(x)} {_n(y)}h0" for x, y in points)
    return (
        f'<path d="{path}" stroke="{color}" stroke-width="{2 * radius:g}" stroke-linecap="round" '
        f'stroke-opacity="{opacity:g}"/>'
    )


def _svg_text(at: Point, text: str, size: float, anchor: str, color: str, bold: bool, upward: bool) -> str:
    x, y = map(_n, at)
    turn = f' transform="rotate(-90 {x} {y})"' if upward else ""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size:g}" text-anchor="{anchor}" fill="{color}"{weight}{turn}>'
        f"{escape(text)}</text>"
    )


def _svg_box(at: Point, size: Point, color: str) -> str:
    return (
        f'<rect x="{_n(at[0])}" y="{_n(at[1])}" width="{_n(size[0])}" height="{_n(size[1])}" fill="{color}"/>'
    )


_SVG: Mapping[str, Callable[..., str]] = {
    "lines": _svg_lines,
    "area": _svg_area,
    "dots": _svg_dots,
    "text": _svg_text,
    "box": _svg_box,
}


def _rgba(color: str, opacity: float = 1) -> tuple[int, int, int, int]:
    digits = color.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    red, green, blue = (int(digits[i : i + 2], 16) for i in (0, 2, 4))
    return red, green, blue, round(255 * opacity)


def _png_lines(
    image: Any, draw: Any, f: float, *, lines: Any, color: str, width: float, dash: Any, opacity: float
) -> None:
    for line in lines:
        for piece in _dashed(line, dash) if dash else [line]:
            points = [(x * f, y * f) for x, y in piece]
            draw.line(points, _rgba(color, opacity), max(1, round(width * f)), joint="curve")


def _dashed(line: list[Point], dash: Sequence[float]) -> list[list[Point]]:
    """Return the dashes of a line."""
    pieces, left, on = [], dash[0], True
    for (x0, y0), (x1, y1) in pairwise(line):
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        done = 0.0
        while done < length:
            step = min(left, length - done)
            ends = [done / length, (done + step) / length]
            if on:
                pieces.append([(x0 + t * (x1 - x0), y0 + t * (y1 - y0)) for t in ends])
            done, left = done + step, left - step
            if left <= 0:
                on = not on
                left = dash[0 if on else 1 % len(dash)]
    return pieces


def _png_area(image: Any, draw: Any, f: float, *, points: Any, color: str, opacity: float) -> None:
    draw.polygon([(x * f, y * f) for x, y in points], _rgba(color, opacity))


def _png_dots(
    image: Any, draw: Any, f: float, *, points: Any, color: str, radius: float, opacity: float
) -> None:
    r = radius * f
    for x, y in points:
        draw.ellipse((x * f - r, y * f - r, x * f + r, y * f + r), _rgba(color, opacity))


def _png_text(
    image: Any,
    draw: Any,
    f: float,
    *,
    at: Point,
    text: str,
    size: float,
    anchor: str,
    color: str,
    bold: bool,
    upward: bool,
) -> None:
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size * f)
    text = spelled(text)
    side = {"start": "l", "middle": "m", "end": "r"}[anchor]
    where = at[0] * f, at[1] * f
    heavy = round(0.03 * size * f) if bold else 0
    if not upward:
        draw.text(where, text, _rgba(color), font, f"{side}s", stroke_width=heavy)
        return
    left, top, right, bottom = font.getbbox(text, anchor="ls")
    word = Image.new("L", (round(right - left) + 4, round(bottom - top) + 4))
    ImageDraw.Draw(word).text((2 - left, 2 - top), text, 255, font, "ls")
    word = word.transpose(Image.Transpose.ROTATE_90)
    shift = {"start": 1.0, "middle": 0.5, "end": 0.0}[anchor]
    corner = round(where[0] + top - 2), round(where[1] - shift * word.height)
    image.paste(_rgba(color)[:3], corner, word)


_SPELLED = {"−": "-", "×": "x", "→": "->", "≤": "<=", "≥": ">=", "ß": "ss"}


def spelled(text: str) -> str:
    """Return a text in the characters of Pillow's own font, with question marks in place of others.

    >>> spelled("ρ = −0.5 ± 0.1, Müller–Лев")
    'rho = -0.5 ± 0.1, Muller-???'
    """
    return "".join(map(_spelled_letter, text))


@cache
def _spelled_letter(letter: str) -> str:
    if _has(letter):
        return letter
    if unicodedata.category(letter) == "Pd":  # dashes of any length
        return "-"
    plain = "".join(c for c in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(c))
    name = unicodedata.name(plain, "") if len(plain) == 1 else ""
    if name.startswith("GREEK"):
        last = name.rpartition(" ")[2].lower()
        return last if "SMALL" in name else last.capitalize()
    found = _SPELLED.get(letter, plain)
    return found if all(map(_has, found)) else "?"


def _has(letter: str) -> bool:
    """Return whether Pillow's font has a character; it draws a box for all others."""
    from PIL import ImageFont

    font = ImageFont.load_default(20)
    return bytes(font.getmask(letter)) != bytes(font.getmask("\uffff"))


def _png_box(image: Any, draw: Any, f: float, *, at: Point, size: Point, color: str) -> None:
    draw.rectangle((at[0] * f, at[1] * f, (at[0] + size[0]) * f, (at[1] + size[1]) * f), _rgba(color))


_PNG: Mapping[str, Callable[..., None]] = {
    "lines": _png_lines,
    "area": _png_area,
    "dots": _png_dots,
    "text": _png_text,
    "box": _png_box,
}

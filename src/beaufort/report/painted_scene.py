"""Default images to corrupt: a landscape, and a digit.

Both are computed, so that a gallery needs no file and looks the same everywhere.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

_FINE = 4
"""Oversampling of the landscape, for smooth edges."""

_Color = tuple[int, int, int]
_Hill = tuple[float, float, float, float, _Color]
_SKY = ((52, 118, 198), (150, 200, 236), (252, 226, 190))
_SUN = (255, 244, 200)
_ROLLING: tuple[_Hill, ...] = (
    # (height of the crest, amplitude, waves over the width, phase, color), far to near
    (0.56, 0.070, 1.4, 0.4, (112, 148, 178)),
    (0.62, 0.050, 2.1, 2.0, (86, 138, 128)),
    (0.69, 0.045, 1.2, 3.6, (98, 158, 74)),
    (0.80, 0.035, 1.0, 5.4, (128, 184, 66)),
)


def paint_scene(side: int = 224) -> Image.Image:
    """Return a landscape with smooth sky, straight edges, leaves, grass and small print; RGB, square."""
    fine = side * _FINE
    canvas = Image.fromarray(_sky(fine))
    draw = ImageDraw.Draw(canvas)
    _clouds(canvas, fine)
    for hill in _ROLLING:
        _hill(draw, fine, hill)
    _field(draw, fine)
    _path(draw, fine)
    _house(draw, fine)
    _tree(draw, fine)
    _fence(draw, fine)
    small = canvas.resize((side, side), Image.Resampling.LANCZOS)
    return Image.fromarray(_grain(np.asarray(small)))


def paint_digit(side: int = 28) -> Image.Image:
    """Return a white 3 on black, as if written by hand; mode L, square."""
    fine = side * 16
    canvas = Image.new("L", (fine, fine))
    draw = ImageDraw.Draw(canvas)
    t = np.linspace(0, 1, 160)
    upper = _arc(t, (0.49, 0.335), (0.155, 0.125), -205, 85)
    lower = _arc(t, (0.485, 0.635), (0.195, 0.180), -85, 160)
    for points, pen in ((upper, 0.042), (lower, 0.046)):
        for i, (x, y) in enumerate(points):
            radius = fine * (pen + 0.010 * math.sin(math.pi * i / len(points)))
            slant = 0.06 * (0.5 - y)
            cx, cy = fine * (x + slant), fine * y
            draw.ellipse((cx - radius, cy - radius, cx + radius, cy + radius), fill=255)
    return canvas.resize((side, side), Image.Resampling.BOX)


def _arc(
    t: NDArray[np.float64], center: tuple[float, float], radii: tuple[float, float], start: float, end: float
) -> list[tuple[float, float]]:
    angles = np.radians(start + (end - start) * t)
    return [(center[0] + radii[0] * math.cos(a), center[1] + radii[1] * math.sin(a)) for a in angles]


def _sky(fine: int) -> NDArray[np.uint8]:
    """Blue above, warm at the horizon, a glow around the sun."""
    y, x = np.mgrid[0:fine, 0:fine] / fine
    stops = np.array(_SKY, np.float64)
    at = np.clip(y / 0.62, 0, 1)[..., None] * (len(stops) - 1)
    low = np.minimum(at.astype(int), len(stops) - 2)
    fraction = at - low
    color = stops[low[..., 0]] * (1 - fraction) + stops[low[..., 0] + 1] * fraction
    distance = np.hypot(x - 0.22, y - 0.20)[..., None]
    glow = np.exp(-((distance / 0.17) ** 2)) * 0.55 + np.exp(-((distance / 0.5) ** 2)) * 0.15
    color = color * (1 - glow) + np.array(_SUN) * glow
    disk = np.clip((0.075 - distance) * fine / _FINE, 0, 1)
    painted: NDArray[np.uint8] = (color * (1 - disk) + np.array((255, 250, 226)) * disk).astype(np.uint8)
    return painted


def _clouds(canvas: Image.Image, fine: int) -> None:
    puffs = ((0.58, 0.17, 1.0), (0.86, 0.30, 0.6), (0.40, 0.36, 0.45))
    for left, top, size in puffs:
        mask = Image.new("L", (fine, fine))
        pen = ImageDraw.Draw(mask)
        for dx, dy, r in (
            (-0.10, 0.015, 0.042),
            (-0.045, -0.018, 0.056),
            (0.022, -0.032, 0.066),
            (0.085, 0.006, 0.05),
        ):
            cx, cy, radius = left + dx * size, top + dy * size, r * size
            pen.ellipse([fine * v for v in (cx - radius, cy - radius, cx + radius, cy + radius)], fill=225)
        base = top + 0.055 * size
        pen.rectangle((0, fine * base, fine, fine), fill=0)
        canvas.paste((255, 253, 250), mask=mask)


def _crest(x: float, height: float, amplitude: float, waves: float, phase: float) -> float:
    bend = math.sin(2 * math.pi * waves * x + phase) + 0.35 * math.sin(4.6 * math.pi * waves * x + 2 * phase)
    return height - amplitude * bend


def _hill(draw: ImageDraw.ImageDraw, fine: int, hill: _Hill) -> None:
    height, amplitude, waves, phase, color = hill
    outline = [(x, fine * _crest(x / fine, height, amplitude, waves, phase)) for x in range(0, fine + 1, 4)]
    draw.polygon([*outline, (fine, fine), (0, fine)], fill=color)


def _field(draw: ImageDraw.ImageDraw, fine: int) -> None:
    """Blades of grass and flowers, finer toward the horizon."""
    random = np.random.RandomState(7)
    petals = ((236, 72, 72), (250, 214, 60), (250, 250, 250), (196, 96, 210))
    for y in np.sort(random.uniform(0.80, 1.04, 2600)):
        x = random.uniform()
        near = (y - 0.76) / 0.28
        if y < _crest(x, *_ROLLING[-1][:4]) + 0.02:
            continue
        shade = random.uniform(0.72, 1.12)
        color = tuple(int(min(255, c * shade)) for c in (104, 168, 52))
        tip = (fine * (x + random.uniform(-0.008, 0.008) * near), fine * (y - 0.035 * near))
        draw.line((fine * x, fine * y, *tip), fill=color, width=max(1, round(fine * 0.0032 * near)))
        if random.uniform() < 0.035:
            radius = fine * 0.0085 * near
            box = (tip[0] - radius, tip[1] - radius, tip[0] + radius, tip[1] + radius)
            draw.ellipse(box, fill=petals[random.randint(len(petals))])


def _path(draw: ImageDraw.ImageDraw, fine: int) -> None:
    """A lighter path that winds from the door to the front."""
    left, right = [], []
    for i in range(60):
        t = i / 59
        y = 0.775 + 0.235 * t
        middle = 0.645 - 0.10 * math.sin(2.6 * t) - 0.06 * t
        half = 0.012 + 0.075 * t**1.5
        left.append((fine * (middle - half), fine * y))
        right.append((fine * (middle + half), fine * y))
    draw.polygon([*left, *reversed(right)], fill=(226, 204, 160))


def _house(draw: ImageDraw.ImageDraw, fine: int) -> None:
    def box(x0: float, y0: float, x1: float, y1: float, color: _Color) -> None:
        draw.rectangle((fine * x0, fine * y0, fine * x1, fine * y1), fill=color)

    box(0.800, 0.415, 0.838, 0.52, (150, 84, 66))
    box(0.54, 0.56, 0.88, 0.785, (250, 240, 220))
    box(0.54, 0.755, 0.88, 0.785, (172, 160, 150))
    for row in range(9):  # boards
        y = 0.575 + row * 0.02
        draw.line((fine * 0.54, fine * y, fine * 0.88, fine * y), fill=(228, 214, 190), width=fine // 450)
    roof = [(0.505, 0.57), (0.60, 0.425), (0.82, 0.425), (0.915, 0.57)]
    draw.polygon([(fine * x, fine * y) for x, y in roof], fill=(186, 62, 50))
    for row in range(1, 6):  # tiles
        down = row / 6
        y, x0, x1 = 0.425 + 0.145 * down, 0.60 - 0.095 * down, 0.82 + 0.095 * down
        draw.line((fine * x0, fine * y, fine * x1, fine * y), fill=(146, 42, 38), width=fine // 300)
        for step in range(18):
            x = x0 + (x1 - x0) * (step + 0.5 * (row % 2)) / 18
            draw.line(
                (fine * x, fine * y, fine * x, fine * (y + 0.024)), fill=(160, 48, 42), width=fine // 450
            )
    box(0.612, 0.645, 0.678, 0.785, (58, 92, 138))
    box(0.620, 0.655, 0.670, 0.705, (98, 140, 184))
    draw.ellipse([fine * v for v in (0.660, 0.718, 0.670, 0.728)], fill=(244, 208, 90))
    for x in (0.715, 0.800):
        box(x - 0.006, 0.624, x + 0.061, 0.711, (255, 255, 252))
        box(x, 0.63, x + 0.055, 0.705, (96, 148, 190))
        draw.polygon(
            [(fine * (x + a), fine * b) for a, b in ((0, 0.705), (0, 0.67), (0.035, 0.63), (0.055, 0.63))],
            fill=(142, 188, 220),
        )
        box(x + 0.025, 0.63, x + 0.030, 0.705, (255, 255, 252))
        box(x, 0.664, x + 0.055, 0.669, (255, 255, 252))
    _sign(draw, fine)


def _sign(draw: ImageDraw.ImageDraw, fine: int) -> None:
    draw.rounded_rectangle([fine * v for v in (0.575, 0.583, 0.848, 0.617)], fine * 0.006, fill=(52, 70, 60))
    font = ImageFont.load_default(fine * 0.030)
    draw.text((fine * 0.7115, fine * 0.5995), "BEAUFORT 1805", font=font, fill=(250, 232, 170), anchor="mm")


def _tree(draw: ImageDraw.ImageDraw, fine: int) -> None:
    trunk = [(0.215, 0.88), (0.228, 0.60), (0.262, 0.60), (0.282, 0.88)]
    draw.polygon([(fine * x, fine * y) for x, y in trunk], fill=(104, 74, 50))
    draw.polygon(
        [(fine * x, fine * y) for x, y in ((0.255, 0.60), (0.262, 0.60), (0.282, 0.88), (0.262, 0.88))],
        fill=(82, 56, 38),
    )
    random = np.random.RandomState(3)
    leaves = []
    for _ in range(1500):
        angle, reach = random.uniform(0, 2 * math.pi), math.sqrt(random.uniform())
        x, y = 0.245 + 0.150 * reach * math.cos(angle), 0.515 + 0.165 * reach * math.sin(angle)
        leaves.append((x, y, random.uniform(0.010, 0.020)))
    for step, (x, y, r) in enumerate(leaves):
        light = 0.62 + 0.5 * step / len(leaves) * (1.15 - ((x - 0.17) + (y - 0.36)) * 1.9)
        color = tuple(int(min(255, max(0, c * light))) for c in (84, 156, 56))
        draw.ellipse([fine * v for v in (x - r, y - r * 0.8, x + r, y + r * 0.8)], fill=color)
    for x, y in ((0.17, 0.52), (0.29, 0.46), (0.24, 0.60), (0.33, 0.56), (0.21, 0.42), (0.27, 0.54)):
        draw.ellipse([fine * v for v in (x - 0.012, y - 0.012, x + 0.012, y + 0.012)], fill=(214, 52, 44))


def _fence(draw: ImageDraw.ImageDraw, fine: int) -> None:
    for y in (0.872, 0.905):
        draw.rectangle([fine * v for v in (0.0, y, 0.335, y + 0.011)], fill=(240, 236, 226))
    for post in range(9):
        x = 0.006 + post * 0.0385
        outline = ((x, 0.945), (x, 0.858), (x + 0.008, 0.846), (x + 0.016, 0.858), (x + 0.016, 0.945))
        draw.polygon([(fine * a, fine * b) for a, b in outline], fill=(252, 250, 244))


def _grain(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A little texture, so that no area is perfectly flat."""
    noise = np.random.RandomState(11).normal(0, 1.6, pixels.shape[:2])[..., None]
    return np.clip(np.rint(pixels + noise), 0, 255).astype(np.uint8)

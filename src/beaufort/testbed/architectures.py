"""Robustness of architectures to the corruptions of ImageNet-C, compared with networks of equal accuracy.

Uses the testbed's accuracies on all 50,000 × 75 published images; no network is run. mCE divides by the
errors of the testbed's own AlexNet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.files import write_output
from beaufort._core.text import csv_text
from beaufort.corruptions import get_corruption_names
from beaufort.metrics import mean_corruption_error, relative_mean_corruption_error
from beaufort.report.axes import Axes, point_range
from beaufort.report.drawing import Drawing, Point
from beaufort.testbed.figures import write_drawing
from beaufort.testbed.grid import Grid
from beaufort.testbed.imagenet_c_tables import tables_of_imagenet_c
from beaufort.testbed.load import load_grid
from beaufort.testbed.trend import RESAMPLES, SEED, Interval, draw_counts

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "plain": ("alexnet", "vgg11", "vgg11_bn", "vgg19", "vgg19_bn"),
    "residual": (
        *("resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
        *("wide_resnet50_2", "wide_resnet101_2"),
    ),
    "aggregating": (
        *("densenet121", "densenet169", "densenet201", "densenet161"),
        *("resnext50_32x4d", "resnext101_32x4d", "resnext101_64x4d", "resnext101_32x8d"),
        *("dpn68", "dpn98", "dpn131"),
    ),
    "multi-branch": ("googlenet/inceptionv1", "bninception", "inceptionv3", "inceptionv4"),
    "small": (
        *("squeezenet1_0", "squeezenet1_1", "nasnetamobile", "mobilenet_v2", "mnasnet1_0", "mnasnet0_5"),
        *("shufflenet_v2_x1_0", "shufflenet_v2_x0_5"),
    ),
}
"""Networks of the study, by family of architectures."""

PRINTED: Mapping[str, tuple[float, float]] = {
    "alexnet": (43.5, 100.0),
    "squeezenet1_1": (41.8, 104.4),
    "resnet18": (30.2, 84.7),
    "resnet50": (23.9, 76.7),
    "densenet121": (25.6, 73.4),
    "densenet161": (22.9, 66.4),
    "resnext50_32x4d": (22.9, 68.2),
    "resnext101_64x4d": (21.0, 62.2),
}
"""Clean error and mCE in percent published by Hendrycks & Dietterich (arXiv:1807.01697) for networks of the
same name; their ResNeXts have other weights."""

_COLORS = {
    "plain": "#666666",
    "residual": "#1a5fa8",
    "aggregating": "#23803f",
    "multi-branch": "#8a3fa0",
    "small": "#c2622d",
}
Floats = NDArray[np.float64]

_NUMBERS = ("clean", "mce", "relative_mce", "noise_ce")
_NOISE = ("gaussian_noise", "shot_noise", "impulse_noise")


@dataclass(frozen=True)
class Architecture:
    """Robustness of one network, in percent."""

    name: str
    family: str
    clean_error: float
    mce: float
    relative_mce: float
    noise_ce: float
    """Mean CE over the three kinds of noise."""
    residual: float
    """mCE minus the prediction of the line for the clean error; negative is more robust."""
    residual_interval: Interval
    """95 % interval over the choice of the fitted networks."""


@dataclass(frozen=True)
class ArchitectureStudy:
    """The networks, and the line through standard networks."""

    networks: tuple[Architecture, ...]
    slope: float
    offset: float
    r2: float
    fitted: int
    """Number of networks that the line is fitted on."""


def study_architectures(grid: Grid | None = None) -> ArchitectureStudy:
    """Compute mCE, relative mCE and the distance from the accuracy line of the networks in `FAMILIES`."""
    grid = load_grid("paper") if grid is None else grid
    numbers = _numbers(grid)
    rows = np.flatnonzero(grid.fitted & np.isfinite(numbers["mce"]))
    x, y = numbers["clean"][rows], numbers["mce"][rows]
    slope, offset = _line(x, y, np.ones(len(x)))
    residuals = y - slope * x - offset
    lines = [_line(x, y, counts) for counts in draw_counts(len(x), RESAMPLES, SEED)]
    networks = []
    for name, family in ((name, family) for family, names in FAMILIES.items() for name in names):
        clean, mce, relative, noise = (float(numbers[key][grid.row_of[name]]) for key in _NUMBERS)
        residual, *others = (mce - a * clean - b for a, b in ((slope, offset), *lines))
        interval = Interval(*map(float, np.quantile(others, [0.025, 0.975])))
        networks.append(Architecture(name, family, clean, mce, relative, noise, residual, interval))
    r2 = float(1 - residuals.var() / y.var())
    return ArchitectureStudy(tuple(networks), slope, offset, r2, len(rows))


def _numbers(grid: Grid) -> dict[str, Floats]:
    """Return clean error, mCE, relative mCE and noise CE of every model, in percent, NaN if incomplete."""
    names = get_corruption_names("common")
    columns = {
        name: np.stack(
            [grid.column(one) for one in grid.setting(f"imagenet-c.{name}_on-disk").members], axis=1
        )
        for name in names
    }
    clean = 1 - grid.column("val") / 100
    whole = np.isfinite(clean) & np.all([np.isfinite(one).all(axis=1) for one in columns.values()], axis=0)
    errors = {name: 1 - column[whole] / 100 for name, column in columns.items()}
    at = int(whole[: grid.row_of["alexnet"]].sum())
    base = {name: values[at] for name, values in errors.items()}
    known = (
        clean[whole],
        mean_corruption_error(errors, base),
        relative_mean_corruption_error(errors, clean[whole], base, clean[whole][at]),
        mean_corruption_error(errors, {name: base[name] for name in _NOISE}),
    )
    out = {key: np.full(len(grid.models), np.nan) for key in _NUMBERS}
    for key, values in zip(_NUMBERS, known, strict=True):
        out[key][whole] = 100 * np.asarray(values)
    return out


def _line(x: Floats, y: Floats, counts: Floats) -> tuple[float, float]:
    """Return slope and offset of the weighted least-squares line."""
    total = counts.sum()
    middle_x, middle_y = (counts @ x) / total, (counts @ y) / total
    slope = (counts @ ((x - middle_x) * (y - middle_y))) / (counts @ (x - middle_x) ** 2)
    return float(slope), float(middle_y - slope * middle_x)


def write_architectures(
    study: ArchitectureStudy, folder: Path | str, *, scores: Path | None = None
) -> Iterator[Path]:
    """Write the table, the figure, and Tables 1 and 2 of the ImageNet-C paper; yield each path.

    Args:
        study: the networks of the testbed.
        folder: output directory.
        scores: CSV table of scores of other networks on `imagenet-c`, for Tables 1 and 2.
    """
    target = Path(folder)
    for name, text in tables_of_imagenet_c(scores):
        write_output(target / name, text.encode())
        yield target / name
    write_output(target / "architectures.csv", architectures_csv(study).encode())
    yield target / "architectures.csv"
    yield write_drawing(draw_architectures(study), target / "architectures.svg")


def architectures_csv(study: ArchitectureStudy) -> str:
    """Return a CSV table of the networks, in percent, beside published values."""
    head = (
        *("network", "family", "clean_error", "mce", "relative_mce", "noise_ce"),
        *("residual", "residual_low", "residual_high", "printed_clean_error", "printed_mce"),
    )
    lines = []
    for one in study.networks:
        ends = (one.residual_interval.low, one.residual_interval.high)
        numbers = (one.clean_error, one.mce, one.relative_mce, one.noise_ce, one.residual, *ends)
        printed = PRINTED.get(one.name, ("", ""))
        lines.append([one.name, one.family, *(f"{number:.2f}" for number in numbers), *printed])
    return csv_text(head, lines)


def draw_architectures(study: ArchitectureStudy) -> Drawing:
    """Draw mCE against clean error with the line, and published values as small dots."""
    drawing = Drawing(820, 680)
    x = np.array([one.clean_error for one in study.networks])
    y = np.array([one.mce for one in study.networks])
    axes = Axes(62, 34, 730, 560, point_range([*x, x.min() - 1]), point_range(y), "linear")
    axes.frame(drawing, "clean error", "mCE", "mCE against clean error")
    along = np.linspace(*axes.x_range, 300)
    drawing.lines([axes.points(along, study.slope * along + study.offset)], "#111", width=1.2, dash=(5, 3))
    dots = {one.name: axes.points([one.clean_error], [one.mce])[0] for one in study.networks}
    for name, (clean, mce) in PRINTED.items():
        there = axes.clipped([clean], [mce])
        drawing.lines([[dots[name], *there]], "#999", width=0.8)
        drawing.dots(there, "#999", radius=1.6)
    for one in study.networks:
        drawing.dots([dots[one.name]], _COLORS[one.family], radius=3.2)
    for name, place in _label_places(dots).items():
        drawing.text(place, name, size=8, color="#444")
    for column, (family, color) in enumerate(_COLORS.items()):
        at = (70 + 118 * column, 648)
        drawing.dots([at], color, radius=3.2)
        drawing.text((at[0] + 7, at[1] + 4), family)
    drawing.text(
        (62, 670), f"line: {study.fitted} standard networks; small gray dots: as printed in the paper", size=9
    )
    return drawing


def _label_places(dots: Mapping[str, Point]) -> dict[str, Point]:
    """Return positions of the names, each at the first side of its dot where it covers no name or dot."""
    taken = [(x - 3.0, y - 3.0, x + 3.0, y + 3.0) for x, y in dots.values()]
    places = {}
    for name, (x, y) in sorted(dots.items(), key=lambda item: item[1][1]):
        wide = 4.4 * len(name)
        sides = [(x + 5, y + 3), (x - 5 - wide, y + 3), (x - wide / 2, y - 6), (x - wide / 2, y + 12)]
        boxes = [(at[0], at[1] - 7, at[0] + wide, at[1] + 1) for at in sides]
        free = [
            i
            for i, a in enumerate(boxes)
            if not any(a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for b in taken)
        ]
        chosen = free[0] if free else 0
        places[name] = sides[chosen]
        taken.append(boxes[chosen])
    return places

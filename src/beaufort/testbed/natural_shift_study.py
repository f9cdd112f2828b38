"""The study of natural shifts: the paper's figures and numbers rebuilt, and what changed since 2020."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np

from beaufort._core.files import write_output
from beaufort._core.text import csv_text
from beaufort.report.axes import Axes, point_range
from beaufort.report.drawing import Drawing, diverging
from beaufort.testbed.correlation import correlate, correlation_table, natural_shifts
from beaufort.testbed.figures import (
    correlation_panel,
    draw_models,
    legend,
    scatter_panel,
    title,
    write_drawing,
)
from beaufort.testbed.grid import Grid
from beaufort.testbed.load import load_grid
from beaufort.testbed.robustness import (
    Accuracies,
    Effective,
    effective_robustness,
    measure,
    relative_robustness,
)
from beaufort.testbed.timm_tables import KINDS, training_data
from beaufort.testbed.trend import Trend, fit_shift

SINCE_SHIFTS = ("imagenetv2-matched-frequency", "imagenet-sketch", "imagenet-r", "imagenet-a")
"""Shifts of both the paper's and timm's grid."""

HIDDEN = {
    "imagenetv2": 55,
    "objectnet": 55,
    "vid-robust": 92,
    "ytbb-robust": 95,
    "vid-robust-pm10": 49,
    "ytbb-robust-pm10": 45,
    "imagenet-a": 75,
}
"""The paper's figures do not draw models below these standard accuracies; its numbers include them."""

_W, _H = 360, 300
_LEFT, _TOP, _GAP_X, _GAP_Y = 62, 34, 88, 82


def write_study(folder: Path | str) -> Iterator[Path]:
    """Write all figures and tables; yield the path of each when it is written."""
    target = Path(folder)
    paper, timm = load_grid("paper"), load_grid("timm")
    since = since_2020(paper, timm)
    figures = {
        "figure-1-definition.svg": _definition(paper),
        "figure-2-dataset-shifts.svg": _panels(
            paper, ["imagenetv2", "objectnet", "vid-robust", "ytbb-robust"]
        ),
        "figure-3-consistency.svg": _panels(paper, ["vid-robust-pm10", "ytbb-robust-pm10"]),
        "figure-4-imagenet-a.svg": _panels(paper, ["imagenet-a"]),
        "figure-5-synthetic-natural.svg": _synthetic(paper),
        "figure-6-interventions.svg": _interventions(paper),
        "figure-7-since-2020.svg": _since(timm, since),
        "figure-8-correlations.svg": _heat_map(paper),
    }
    for name, drawing in figures.items():
        yield write_drawing(drawing, target / name)
    template = (files("beaufort.testbed") / "data" / "study.md").read_text(encoding="utf-8")
    page = Template(template).substitute(paper=_paper_table(paper), since=_since_table(since))
    for name, text in {"README.md": page, "since-2020.csv": since_csv(since)}.items():
        write_output(target / name, text.encode())
        yield target / name


# timm's models against the paper's trend


class KindRow(NamedTuple):
    """timm's entries with one kind of training data on one shift."""

    kind: str
    n: int
    above: int
    """Number of entries above the prediction interval of the fitted models."""
    below: int
    extrapolated: int
    """Number of entries outside the accuracies that the trend was fitted on."""
    median: float
    """Median ρ, in points."""
    median_today: float
    """Median ρ against the trend of timm's own standard models."""
    best: Effective


@dataclass(frozen=True)
class Since:
    """timm's entries on one shift."""

    shift: str
    trend: Trend
    today: Trend
    """Trend of timm's own standard models."""
    entries: tuple[Effective, ...]

    def by_kind(self) -> list[KindRow]:
        """Return a row for each kind of training data."""
        rows = []
        for kind in reversed(list(KINDS)):
            entries = [one for one in self.entries if one.type == kind and one.rho is not None]
            if not entries:
                continue
            verdicts = [one.verdict for one in entries]
            clean, shifted = np.array([(one.clean, one.shifted) for one in entries]).T
            rows.append(
                KindRow(
                    kind,
                    len(entries),
                    verdicts.count("above"),
                    verdicts.count("below"),
                    sum(one.extrapolated for one in entries),
                    float(np.median([one.rho for one in entries if one.rho is not None])),
                    float(np.median(shifted - self.today.predict(clean))),
                    max(entries, key=lambda one: -np.inf if one.rho is None else one.rho),
                )
            )
        return rows


def since_2020(paper: Grid, timm: Grid) -> list[Since]:
    """Compare timm's entries with the trends of the paper's 78 standard models.

    The type of an entry is its kind of training data.
    """
    found = []
    for shift in SINCE_SHIFTS:
        trend, clean = fit_shift(paper, shift), timm.clean_of(shift).name
        x, y = timm.column(clean), timm.column(shift)
        rows = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
        entries = measure(
            trend,
            [(timm.models[row], training_data(timm.models[row])) for row in rows],
            Accuracies(x[rows], timm.images(clean)[rows], paper.setting(clean).images),
            Accuracies(y[rows], timm.images(shift)[rows], paper.setting(shift).images),
        )
        found.append(Since(shift, trend, fit_shift(timm, shift), entries))
    return found


# Figures


def _box(place: int, columns: int = 2) -> tuple[float, float, float, float]:
    row, column = divmod(place, columns)
    return _LEFT + column * (_W + _GAP_X), _TOP + row * (_H + _GAP_Y), _W, _H


def _sheet(count: int, columns: int = 2) -> Drawing:
    rows = -(-count // columns)
    width = _LEFT + min(count, columns) * (_W + _GAP_X) - _GAP_X + 16
    return Drawing(width, _TOP + rows * (_H + _GAP_Y) + (24 if count > 1 else 60))


def _key(drawing: Drawing, grid: Grid, *, lines: bool = True) -> None:
    height = 24 if drawing.width > 500 else 60
    legend(drawing, grid, (_LEFT - 20, drawing.height - height), width=drawing.width - _LEFT, lines=lines)


def _panels(grid: Grid, shifts: list[str]) -> Drawing:
    drawing = _sheet(len(shifts))
    for place, shift in enumerate(shifts):
        scatter_panel(drawing, _box(place), grid, shift, least=HIDDEN[shift])
    _key(drawing, grid)
    return drawing


def _definition(grid: Grid) -> Drawing:
    """Show ρ and τ of one model: a ResNet-50 trained with more data, and its base model."""
    model, base, shift = "resnet50_swsl", "resnet50", "imagenetv2"
    drawing = _sheet(1)
    axes = scatter_panel(
        drawing,
        _box(0),
        grid,
        shift,
        least=73,
        intervals=False,
        heading="Effective (ρ) and relative (τ) robustness",
    )
    (one,) = effective_robustness(grid, shift, select=[model]).models
    (pair,) = relative_robustness(grid, shift, select=[model]).models
    assert one.expected is not None
    assert pair.pair.base == base
    x = float(axes.x(one.clean))
    base_x = float(axes.x(grid.column("val")[grid.row_of[base]]))
    top, line, low = (float(axes.y(value)) for value in (one.shifted, one.expected, pair.base_shifted))
    drawing.lines([[(x, top), (x, line)]], "#111", width=2.2)
    drawing.text((x - 6, (top + line) / 2 - 2), f"ρ = {one.rho:+.1f}", anchor="end", bold=True)
    drawing.lines([[(base_x, low), (x + 26, low)], [(x, top), (x + 26, top)]], "#111", width=0.8, dash=(2, 2))
    drawing.lines([[(x + 26, top), (x + 26, low)]], "#111", width=2.2)
    drawing.text((x + 32, (top + low) / 2 + 10), f"τ = {pair.tau:+.1f}", bold=True)
    drawing.dots([(x, top), (base_x, low)], "#111", radius=4, opacity=1)
    drawing.text((x - 8, top - 16), model, anchor="end")
    drawing.text((base_x + 8, low + 14), base)
    _key(drawing, grid)
    return drawing


def _synthetic(grid: Grid) -> Drawing:
    drawing = _sheet(2)
    for place, (synthetic, heading) in enumerate(
        (("avg_corruptions", "Corruptions"), ("avg_pgd", "PGD attacks"))
    ):
        correlation = correlate(grid, synthetic, "imagenetv2", select=["v1"])
        correlation_panel(drawing, _box(place), grid, correlation, heading=heading)
    _key(drawing, grid, lines=False)
    return drawing


def _interventions(grid: Grid) -> Drawing:
    """Draw τ against ρ; useful interventions are in the upper right quarter."""
    drawing = _sheet(4)
    for place, shift in enumerate(("imagenetv2", "objectnet", "vid-robust-pm10", "ytbb-robust-pm10")):
        rho = {one.model: one.rho for one in effective_robustness(grid, shift).models}
        pairs = relative_robustness(grid, shift).models
        tau = [(one.pair.model, one.tau) for one in pairs if rho.get(one.pair.model) is not None]
        models = [model for model, _ in tau]
        x, y = np.array([rho[model] for model in models], np.float64), np.array([value for _, value in tau])
        axes = Axes(*_box(place), point_range(x), point_range(y), "linear")
        useful = int(((x > 0) & (y > 0)).sum())
        heading = f"{title(grid.setting(shift).name)}: {useful} of {len(tau)} useful"
        axes.frame(drawing, "effective robustness ρ", "relative robustness τ", heading, unit="points")
        drawing.lines(
            [axes.clipped([0, 0], axes.y_range), axes.clipped(axes.x_range, [0, 0])], "#555", dash=(4, 3)
        )
        draw_models(drawing, axes, grid, models, x, y)
    _key(drawing, grid, lines=False)
    return drawing


def _since(timm: Grid, since: list[Since]) -> Drawing:
    drawing = _sheet(len(since))
    for place, one in enumerate(since):
        scatter_panel(
            drawing,
            _box(place),
            timm,
            one.shift,
            trend=one.trend,
            intervals=False,
            least=60,
            heading=f"{title(one.shift)}, trend of 2020",
        )
    _key(drawing, timm)
    return drawing


def _heat_map(grid: Grid) -> Drawing:
    """Draw the correlation of every synthetic with every natural shift; blue is negative, red positive."""
    naturals = natural_shifts(grid)
    correlations = correlation_table(grid)
    names = list(dict.fromkeys(one.synthetic for one in correlations))
    left, top, wide, high = 210, 150, 56, 17
    drawing = Drawing(left + wide * len(naturals) + 20, top + high * len(names) + 20)
    for column, name in enumerate(naturals):
        drawing.text((left + wide * (column + 0.5) + 4, top - 8), title(name), size=10, upward=True)
    for place, one in enumerate(correlations):
        row, column = divmod(place, len(naturals))
        at = left + wide * column, top + high * row
        if column == 0:
            label = title(one.synthetic).removeprefix("imagenet-c.").replace("_", " ")
            drawing.text((left - 8, at[1] + 12), label, size=10, anchor="end")
        drawing.box(at, (wide - 1, high - 1), diverging(one.pearson))
        ink = "#fff" if abs(one.pearson) > 0.6 else "#222"
        text = f"{one.pearson:.2f}".replace("-", "−")
        drawing.text((at[0] + wide / 2, at[1] + 12), text, size=10, anchor="middle", color=ink)
    return drawing


# Tables


def _paper_table(grid: Grid) -> str:
    """Return the trends and the headline numbers of the paper."""
    lines = [
        "| shift | standard accuracy | slope | intercept | r² | models |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for shift in natural_shifts(grid):
        line = fit_shift(grid, shift)
        for where, side in line.sides:
            name = f"{title(shift)}, {where}" if where else title(shift)
            lines.append(
                f"| {name} | {title(grid.clean_of(shift).name)} | {side.slope:.3f} "
                f"| {side.intercept:.3f} | {side.r2:.2f} | {side.n} |"
            )
    lines += ["", "| quantity | models | value |", "|---|---|---:|"]
    lines += [f"| {what} | {models} | {value} |" for what, models, value in _headlines(grid)]
    return "\n".join(lines) + "\n"


def _headlines(grid: Grid) -> Iterator[tuple[str, str, str]]:
    selections = (
        ("imagenetv2", "resnet152-imagenet11k"),
        ("imagenetv2", "instagram-*"),
        ("imagenetv2", "efficientnet-l2-noisystudent"),
        ("imagenetv2", "google_resnet101_jft-300M"),
        ("vid-robust-pm10", "resnet50-lp"),
        ("ytbb-robust-pm10", "resnet50-lp"),
        ("imagenet-r", "instagram-resnext101_32x16d"),
        ("imagenet-r", "resnext101_32x8d_deepaugment_augmix"),
        ("imagenet-r", "efficientnet-b8-advprop-autoaug"),
        ("imagenet-r", "facebook_adv_trained_resnet152_denoise"),
    )
    for shift, models in selections:
        rho = effective_robustness(grid, shift, select=[models])
        yield f"ρ, {title(rho.y)}", f"`{models}` ({len(rho.defined)})", f"{rho.mean:+.2f}"
    for shift in ("vid-robust-pm10", "ytbb-robust-pm10"):
        tau = relative_robustness(grid, shift, select=["resnet50-lp"])
        yield f"τ, {title(tau.y)}", f"`resnet50-lp` ({len(tau.models)})", f"{tau.mean:+.2f}"
    for synthetic in ("avg_corruptions", "avg_pgd"):
        one = correlate(grid, synthetic, "imagenetv2", select=["v1"])
        yield (
            f"Pearson, ImageNetV2 with the {title(synthetic)}",
            f"`v1`, not standard ({one.n})",
            f"{one.pearson:.2f}",
        )


def _since_table(since: list[Since]) -> str:
    """Return how many models of each kind lie above the trend of 2020, and by how much."""
    lines = []
    for one in since:
        lines += [
            f"### {title(one.shift)}",
            "",
            "| training data | entries | above | below | extrapolated | median ρ | against today's trend "
            "| highest ρ | entry |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---|",
        ]
        for row in one.by_kind():
            ends = row.best.interval
            assert row.best.rho is not None
            best = _points(row.best.rho) + (f" [{_points(ends.low)}, {_points(ends.high)}]" if ends else "")
            counts = f"{row.n} | {row.above} | {row.below} | {row.extrapolated}"
            medians = f"{_points(row.median)} | {_points(row.median_today)}"
            lines.append(f"| {row.kind} | {counts} | {medians} | {best} | `{row.best.model}` |")
        lines.append("")
    return "\n".join(lines)


def _points(value: float) -> str:
    """Format points with a sign, and 0 without."""
    text = f"{value:+.1f}"
    return "0.0" if text in {"-0.0", "+0.0"} else text.replace("-", "−")


def since_csv(since: list[Since]) -> str:
    """Return a CSV table of every entry with its ρ and interval on every shift."""
    rows: dict[str, dict[str, str]] = {}
    for one in since:
        for entry in one.entries:
            row = rows.setdefault(entry.model, {"training_data": entry.type})
            row[f"{one.shift} rho"] = "" if entry.rho is None else f"{entry.rho:.2f}"
            row[f"{one.shift} low"] = f"{entry.interval.low:.2f}" if entry.interval else ""
            row[f"{one.shift} high"] = f"{entry.interval.high:.2f}" if entry.interval else ""
            row[f"{one.shift} percentile"] = "" if entry.percentile is None else f"{entry.percentile:.2f}"
            row[f"{one.shift} extrapolated"] = str(int(entry.extrapolated))
    numbers = [
        f"{one.shift} {what}"
        for one in since
        for what in ("rho", "low", "high", "percentile", "extrapolated")
    ]
    names = ["training_data", *numbers]
    lines = [(model, *(row.get(name, "") for name in names)) for model, row in rows.items()]
    return csv_text(["model", *names], lines)

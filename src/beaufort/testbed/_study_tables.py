"""The tables of the study of natural shifts."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from string import Template

from beaufort._core.text import csv_text
from beaufort.testbed.correlation import correlate, natural_shifts
from beaufort.testbed.effective import effective_robustness
from beaufort.testbed.fit import Knee, Line, fit_shift
from beaufort.testbed.grid import Grid
from beaufort.testbed.legend import title
from beaufort.testbed.relative import relative_robustness
from beaufort.testbed.since_2020 import Since


def paper_table(grid: Grid) -> str:
    """The trends and the headline numbers of the paper."""
    lines = [
        "| shift | standard accuracy | slope | intercept | r² | models |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for shift in natural_shifts(grid):
        line = fit_shift(grid, shift)
        sides: list[tuple[str, Line]] = [("", line)] if isinstance(line, Line) else []
        if isinstance(line, Knee):
            sides = [(f", up to {line.pivot:.2f} %", line.left), (f", above {line.pivot:.2f} %", line.right)]
        for where, side in sides:
            lines.append(
                f"| {title(shift)}{where} | {title(grid.clean_of(shift).name)} | {side.slope:.3f} "
                f"| {side.intercept:.3f} | {side.r2:.2f} | {side.n} |"
            )
    lines += ["", "| what | models | value |", "|---|---|---:|"]
    lines += [f"| {what} | {models} | {value} |" for what, models, value in _headlines(grid)]
    return "\n".join(lines) + "\n"


def _headlines(grid: Grid) -> Iterator[tuple[str, str, str]]:
    asked = (
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
    for shift, models in asked:
        found = effective_robustness(grid, shift, select=[models])
        yield f"ρ, {title(found.y)}", f"`{models}` ({len(found.defined)})", f"{found.mean:+.2f}"
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


def since_table(since: list[Since]) -> str:
    """Which kinds of models now lie above the trend of 2020, and by how much."""
    lines = []
    for one in since:
        lines += [
            f"### {title(one.shift)}",
            "",
            "| training data | entries | above | below | extrapolated | median ρ | against today's trend "
            "| highest ρ | its entry |",
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
    """Points with a sign, of which 0 has none."""
    text = f"{value:+.1f}"
    return "0.0" if text in {"-0.0", "+0.0"} else text.replace("-", "−")


def study_text(grid: Grid, since: list[Since]) -> str:
    """The page of the study: what was found, with its tables."""
    template = (files("beaufort.testbed") / "data" / "study.md").read_text(encoding="utf-8")
    return Template(template).substitute(paper=paper_table(grid), since=since_table(since))


def since_csv(since: list[Since]) -> str:
    """Every entry with its ρ and interval on every shift."""
    found: dict[str, dict[str, str]] = {}
    for one in since:
        for entry in one.entries:
            row = found.setdefault(entry.model, {"training_data": entry.type})
            row[f"{one.shift} rho"] = "" if entry.rho is None else f"{entry.rho:.2f}"
            row[f"{one.shift} low"] = f"{entry.interval.low:.2f}" if entry.interval else ""
            row[f"{one.shift} high"] = f"{entry.interval.high:.2f}" if entry.interval else ""
            row[f"{one.shift} extrapolated"] = str(int(entry.extrapolated))
    numbers = [f"{one.shift} {what}" for one in since for what in ("rho", "low", "high", "extrapolated")]
    names = ["training_data", *numbers]
    lines = [(model, *(row.get(name, "") for name in names)) for model, row in found.items()]
    return csv_text(["model", *names], lines)

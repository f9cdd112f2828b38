"""`beaufort testbed`: effective and relative robustness in a grid of models and test sets."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import byte_size, counted, printable
from beaufort._core.validation import validate_choice
from beaufort.cli._console import table
from beaufort.cli._options import Json, OptionalOutput, Output, Resamples
from beaufort.cli._testbed_options import (
    Axis,
    BootstrapSeed,
    Clean,
    FitOn,
    GridName,
    Images,
    KneeAt,
    Level,
    ScoresFile,
    Select,
    Shift,
    images_of,
    knee_of,
)

if TYPE_CHECKING:
    from beaufort.testbed import Grid

app = typer.Typer(
    no_args_is_help=True, help="Effective and relative robustness in a grid of models and test sets."
)


@app.command("ls")
def list_grids(grid: GridName = "", as_json: Json = False) -> None:
    """List the grids that come with the package, or the contents of one.

    `beaufort testbed ls --grid paper`
    """
    from beaufort.testbed import GRIDS, load_grid
    from beaufort.testbed.json_values import grid_dict

    if not grid:
        if as_json:
            _print_json({"grids": [grid_dict(load_grid(name)) for name in GRIDS]})
        else:
            typer.echo(table([("grid", "what it is"), *GRIDS.items()]))
        return
    one = load_grid(grid)
    found = grid_dict(one)
    if as_json:
        names = {"model_names": one.models, "setting_names": one.settings, "aggregate_names": one.aggregates}
        _print_json(found | {key: list(some) for key, some in names.items()})
        return
    for key, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{name}: {count}" for name, count in value.items())
        typer.echo(f"{key.replace('_', ' ')}: {printable(value)}")
    rows = [(name, s.kind, s.group, str(s.images or ""), s.clean or "") for name, s in one.settings.items()]
    typer.echo("\n" + table([("setting", "kind", "group", "images", "standard accuracy"), *rows]))


@app.command()
def fit(
    grid: GridName = "paper",
    y: Shift = None,
    x: Clean = None,
    fit_on: FitOn = None,
    axis: Axis = "logit",
    knee: KneeAt = "auto",
    resamples: Resamples = 1000,
    seed: BootstrapSeed = 720257663,
    as_json: Json = False,
) -> None:
    """Fit the trend: the accuracy under a shift that a standard accuracy predicts.

    `beaufort testbed fit --y imagenetv2`

    Least squares on logit axes, with bootstrap intervals (95 %) over the models that were fitted on. Without
    --y, the natural shifts of the grid.
    """
    from beaufort.testbed import load_grid
    from beaufort.testbed.json_values import fits_dict

    loaded = load_grid(grid, fit_on=fit_on)
    found = fits_dict(loaded, y, x=x, scale=axis, knee=knee_of(knee), resamples=resamples, seed=seed)
    _warn(loaded)
    if as_json:
        _print_json(found["fits"][0] if y else found)
        return
    rows = []
    for one in found["fits"]:
        lines = [("", one)]
        if one["knee"] is not None:
            lines = [("up to ", one["left"]), ("above ", one["right"])]
        for side, line in lines:
            where = f" ({side}{one['knee']:.2f} %)" if side else ""
            numbers = (_number(line[name], line[f"{name}_interval"]) for name in ("slope", "intercept"))
            rows.append((f"{one['x']} → {one['y']}{where}", *numbers, f"{line['r2']:.3f}", str(line["n"])))
    typer.echo(table([("fit", "slope", "intercept", "r²", "n"), *rows]))
    typer.echo(f"\n{axis} axes; fitted on {loaded.fit_rule}; 95 % bootstrap intervals")
    for one in found["fits"]:
        for note in one["notes"]:
            typer.echo(printable(note if y else f"{one['y']}: {note}"))
    for why in found["not_fitted"].values():
        typer.echo(f"not fitted: {printable(why)}")


@app.command()
def rho(
    grid: GridName = "paper",
    y: Shift = None,
    x: Clean = None,
    select: Select = None,
    fit_on: FitOn = None,
    n: Images = None,
    axis: Axis = "logit",
    knee: KneeAt = "auto",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: BootstrapSeed = 720257663,
    as_json: Json = False,
) -> None:
    """Print effective robustness: points above the trend, for chosen models and in the mean.

    `beaufort testbed rho --y vid-robust-pm10 --select resnet50-lp`

    The shift is ImageNetV2 by default. An interval covers the images of both test sets and which models the
    trend was fitted on. It does not cover a new training run of the model, nor how the models fitted on
    scatter around the trend.
    """
    from beaufort.testbed import effective_robustness, load_grid
    from beaufort.testbed.json_values import rho_dict

    loaded = load_grid(grid, fit_on=fit_on, images=images_of(n))
    found = rho_dict(
        loaded,
        effective_robustness(
            loaded,
            y or loaded.default_shift(),
            x=x,
            select=select or (),
            scale=axis,
            knee=knee_of(knee),
            level=level,
            resamples=resamples,
            seed=seed,
        ),
    )
    _warn(loaded)
    if as_json:
        _print_json(found)
        return
    rows = []
    for one in sorted(found["models"], key=lambda one: -(one["rho"] if one["rho"] is not None else -1e9)):
        beyond = "extrapolated" if one["extrapolated"] else ""
        accuracies = f"{one['x']:.2f}", f"{one['y']:.2f}"
        rows.append((_points(one), *accuracies, beyond, one["type"], printable(one["model"])))
    typer.echo(table([("rho [interval]", "x", "y", "", "type", "model"), *rows]))
    typer.echo(f"\nmean of {found['n']}: {_points(found)}; {printable(found['x'])} → {printable(found['y'])}")
    lines = "trend" if found["knee"] is None else f"trend with a knee at {found['knee']:.2f} %,"
    typer.echo(f"{lines} fitted on {loaded.fit_rule}; {found['fitted']} are in the fit")
    for note in found["notes"]:
        typer.echo(printable(note))
    if all(one["low"] is None for one in found["models"]):
        typer.echo("no intervals: the number of images is not known; pass it with --n")
    else:
        typer.echo(f"{100 * level:g} % intervals, which cover {found['interval_covers']}")
    _print_missing(found["missing"], "one of the two accuracies")


@app.command()
def tau(
    grid: GridName = "paper",
    y: Shift = None,
    select: Select = None,
    pairs: Annotated[
        Path | None, typer.Option(help="CSV file with model, base_model; the grid's own pairs by default.")
    ] = None,
    n: Images = None,
    level: Level = 0.95,
    as_json: Json = False,
) -> None:
    """Print relative robustness: accuracy under a shift against the model that was changed.

    `beaufort testbed tau --y vid-robust-pm10 --select resnet50-lp`

    The shift is ImageNetV2 by default.
    """
    from beaufort.testbed import load_grid, relative_robustness
    from beaufort.testbed.json_values import tau_dict
    from beaufort.testbed.load import read_pairs

    loaded = load_grid(grid, images=images_of(n))
    own = None if pairs is None else read_pairs(pairs)
    shift = y or loaded.default_shift()
    found = tau_dict(loaded, relative_robustness(loaded, shift, select=select or (), pairs=own, level=level))
    _warn(loaded)
    if as_json:
        _print_json(found)
        return
    rows = [
        (_points(one, "tau"), printable(one["model"]), printable(one["base"]))
        for one in sorted(found["models"], key=lambda one: -one["tau"])
    ]
    typer.echo(table([("tau [interval]", "model", "made from"), *rows]))
    about = f"{_points(found, 'tau')} on {printable(found['y'])}"
    known = any(one["low"] is not None for one in found["models"])
    ends = f"{100 * level:g} % intervals" if known else "no intervals: pass the number of images with --n"
    typer.echo(f"\nmean of {found['n']}: {about}, {ends}")
    _print_missing(found["missing"], "a base model, or an accuracy")


@app.command()
def correlate(
    grid: GridName = "paper",
    synthetic: Annotated[
        str | None, typer.Option(help="A setting, avg_corruptions or avg_pgd; all by default.")
    ] = None,
    natural: Annotated[str | None, typer.Option(help="A natural shift; all by default.")] = None,
    x: Clean = None,
    select: Select = None,
    fit_on: FitOn = None,
    axis: Axis = "logit",
    as_json: Json = False,
) -> None:
    """Correlate effective robustness to synthetic shifts with that to natural ones.

    Over the models that are not standard; each trend is fitted on all standard models that have its two
    accuracies.

    `beaufort testbed correlate --synthetic avg_pgd --natural imagenetv2 --select v1`
    """
    from beaufort.testbed import correlation_table, load_grid
    from beaufort.testbed.correlation import natural_shifts, synthetic_shifts
    from beaufort.testbed.json_values import correlation_dict

    loaded = load_grid(grid, fit_on=fit_on)
    found = correlation_table(
        loaded,
        synthetic=[synthetic] if synthetic else None,
        natural=[natural] if natural else None,
        x=x,
        select=select or (),
        scale=axis,
    )
    _warn(loaded)
    if as_json:
        values = [correlation_dict(loaded, one, points=len(found) == 1) for one in found]
        _print_json(values[0] if len(values) == 1 else {"grid": loaded.name, "correlations": values})
        return
    columns = list(dict.fromkeys(one.natural for one in found))
    rows: dict[str, dict[str, str]] = {}
    for one in found:
        rows.setdefault(one.synthetic, {})[one.natural] = f"{one.pearson:+z.2f} ({one.n})"
    lines = [(name, *(cells.get(column, "–") for column in columns)) for name, cells in rows.items()]
    typer.echo(table([("Pearson (n)", *columns), *lines]))
    asked = [*(() if synthetic else synthetic_shifts(loaded)), *(() if natural else natural_shifts(loaded))]
    if missing := [name for name in asked if name not in rows and name not in columns]:
        why = "too few models have them, or those do not differ"
        typer.echo(f"\nleft out, because {why}: {printable(', '.join(missing))}")


@app.command()
def plot(
    grid: GridName = "paper",
    y: Shift = None,
    x: Clean = None,
    output: Output = Path("testbed.html"),
    scores: Annotated[Path | None, typer.Option(help=ScoresFile)] = None,
    name: Annotated[str, typer.Option(help="Name of your own model in --scores.")] = "your model",
    fit_on: FitOn = None,
    axis: Axis = "logit",
) -> None:
    """Draw a grid: an interactive page (.html), or a figure for a paper (.svg, .png).

    `beaufort testbed plot -o testbed.html`

    `beaufort testbed plot --y objectnet -o objectnet.svg`
    """
    from beaufort.testbed import load_grid, read_scores
    from beaufort.testbed.figures import write_figure
    from beaufort.testbed.testbed_page import write_page

    loaded = load_grid(grid, fit_on=fit_on)
    own = None if scores is None else read_scores(scores)
    kind = output.suffix.lower()
    if kind in {".html", ".htm"}:
        write_page(loaded, output, y=y, x=x, scale=axis, own=own, own_name=name)
    elif kind in {".svg", ".png"}:
        shift = y or loaded.default_shift()
        write_figure(loaded, output, y=shift, x=x, scale=axis, own=own, own_name=name)
    else:
        raise OptionError(f"output must end in .html, .svg or .png, got {output}")
    many = counted(len(loaded.models), "model")
    typer.echo(f"{printable(output)}: {many}, {byte_size(output.stat().st_size)}")


@app.command()
def study(
    name: Annotated[
        str, typer.Argument(metavar="[natural-shifts|architectures]", help="Study to rebuild.")
    ] = "natural-shifts",
    output: OptionalOutput = None,
    as_json: Json = False,
) -> None:
    """Rebuild a study from the figures of the package.

    `beaufort testbed study --output natural-shifts` writes the paper's five figures, and what changed since,
    with timm's models.

    `beaufort testbed study architectures` prints mCE, relative mCE and the distance from the line of accuracy
    of 35 networks; with --output it writes the table and a figure, too.
    """
    from beaufort.testbed.architectures import study_architectures, write_architectures
    from beaufort.testbed.natural_shift_study import write_study

    if validate_choice("study", name, ("natural-shifts", "architectures")) == "natural-shifts":
        if as_json:
            raise OptionError("--json requires the study architectures")
        for path in write_study(output or Path("natural-shifts")):
            typer.echo(printable(path))
        return
    found = study_architectures()
    written = [] if output is None else list(write_architectures(found, output))
    if as_json:
        _print_json(asdict(found))
        return
    header = ("network", "family", "clean error", "mCE", "relative mCE", "noise CE", "off the line [95 %]")
    rows = []
    for one in found.networks:
        numbers = (f"{x:.1f}" for x in (one.clean_error, one.mce, one.relative_mce, one.noise_ce))
        ends = f"[{one.residual_interval.low:+.1f}, {one.residual_interval.high:+.1f}]"
        rows.append((one.name, one.family, *numbers, f"{one.residual:+.1f} {ends}"))
    typer.echo(table([header, *rows]))
    sign = "-" if found.offset < 0 else "+"
    typer.echo(
        f"\nline through {found.fitted} standard networks: mCE = {found.slope:.3f} × clean error "
        f"{sign} {abs(found.offset):.1f}, r² {found.r2:.2f}; below it is more robust than accuracy explains. "
        "Intervals are over the choice of these networks"
    )
    for path in written:
        typer.echo(printable(path))


def _print_json(values: Any) -> None:
    typer.echo(json.dumps(values, indent=2, allow_nan=False, ensure_ascii=False))


def _warn(grid: Grid) -> None:
    if caveat := grid.facts.get("caveat"):
        typer.echo(f"warning: the grid {printable(grid.name)}: {printable(caveat)}", err=True)


def _points(one: dict[str, Any], key: str = "rho") -> str:
    if one[key] is None:
        return "not defined"
    if one["low"] is None:
        return f"{one[key]:+z.2f}"
    return f"{one[key]:+z.2f} [{one['low']:+z.2f}, {one['high']:+z.2f}]"


def _number(value: float, ends: dict[str, float]) -> str:
    return f"{value:.3f} [{ends['low']:.3f}, {ends['high']:.3f}]"


def _print_missing(names: list[str], what: str) -> None:
    if names:
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        typer.echo(f"{len(names)} chosen lack {what}: {printable(shown)}")

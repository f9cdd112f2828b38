"""`beaufort testbed`: effective and relative robustness in a grid of models and test sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.text import byte_size, counted, printable
from beaufort.cli._console import table
from beaufort.cli._options import Json
from beaufort.cli._testbed_options import (
    Clean,
    DrawSeed,
    FitOn,
    GridName,
    Images,
    KneeAt,
    Level,
    Models,
    Resamples,
    ScaleName,
    Select,
    Shift,
    ShiftOrV2,
    chosen,
    images_of,
    knee_of,
)

if TYPE_CHECKING:
    from beaufort.testbed import Grid

app = typer.Typer(
    no_args_is_help=True, help="Effective and relative robustness in a grid of models and test sets."
)


@app.command("ls")
def list_grids(
    grid: Annotated[str | None, typer.Option(help="Show one grid: models, settings, groups.")] = None,
    as_json: Json = False,
) -> None:
    """List the grids that come with the package, or what one of them holds.

    `beaufort testbed ls --grid paper`
    """
    from beaufort.testbed import GRIDS, load_grid
    from beaufort.testbed.json_values import grid_dict

    if grid is None:
        told = [grid_dict(load_grid(name)) for name in GRIDS]
        if as_json:
            _print_json({"grids": told})
        else:
            typer.echo(table([("grid", "what it is"), *GRIDS.items()]))
        return
    one = load_grid(grid)
    if as_json:
        _print_json(
            {
                **grid_dict(one),
                "model_names": list(one.models),
                "setting_names": list(one.settings),
                "aggregate_names": list(one.aggregates),
            }
        )
        return
    for key, value in grid_dict(one).items():
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
    scale: ScaleName = "logit",
    knee: KneeAt = "auto",
    resamples: Resamples = 1000,
    seed: DrawSeed = 720257663,
    as_json: Json = False,
) -> None:
    """Fit the trend: the accuracy under a shift that a standard accuracy predicts.

    `beaufort testbed fit --y imagenetv2`

    Least squares on logit axes, with bootstrap intervals (95 %) over the models that were fitted on. Without
    --y, the natural shifts of the grid.
    """
    from beaufort.testbed import fit_shift, load_grid
    from beaufort.testbed.correlation import natural_shifts
    from beaufort.testbed.json_values import fit_dict

    loaded = load_grid(grid, fit_on=fit_on)
    shifts = [y] if y else natural_shifts(loaded)
    if not shifts:
        raise OptionError(f"the grid {loaded.name} has no natural shifts; name a shift with --y")
    told, failed = [], {}
    for shift in shifts:
        try:
            trend = fit_shift(loaded, shift, x=x, scale=scale, knee=knee_of(knee))
        except OptionError as error:
            if len(shifts) == 1:
                raise
            failed[shift] = str(error)
            continue
        clean = loaded.setting(x) if x else loaded.clean_of(shift)
        told.append(
            fit_dict(loaded, clean.name, loaded.setting(shift).name, trend, resamples=resamples, seed=seed)
        )
    _warn(loaded)
    if as_json:
        _print_json(told[0] if y else {"grid": loaded.name, "fits": told, "not_fitted": failed})
        return
    rows = []
    for one in told:
        lines = [("", one)]
        if one["knee"] is not None:
            lines = [("up to ", one["left"]), ("above ", one["right"])]
        for side, line in lines:
            where = f" ({side}{one['knee']:.2f} %)" if side else ""
            rows.append(
                (
                    f"{one['x']} → {one['y']}{where}",
                    _number(line["slope"], line["slope_interval"], ".3f"),
                    _number(line["intercept"], line["intercept_interval"], ".3f"),
                    f"{line['r2']:.3f}",
                    str(line["n"]),
                )
            )
    typer.echo(table([("fit", "slope", "intercept", "r²", "n"), *rows]))
    typer.echo(f"\n{scale} axes; fitted on {loaded.fit_rule}; 95 % bootstrap intervals")
    for one in told:
        _tell_notes(one["notes"], "" if y else f"{one['y']}: ")
    for why in failed.values():
        typer.echo(f"not fitted: {printable(why)}")


@app.command()
def rho(
    grid: GridName = "paper",
    y: ShiftOrV2 = None,
    x: Clean = None,
    model: Models = None,
    select: Select = None,
    fit_on: FitOn = None,
    n: Images = None,
    scale: ScaleName = "logit",
    knee: KneeAt = "auto",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: DrawSeed = 720257663,
    as_json: Json = False,
) -> None:
    """Effective robustness: points above the trend, for chosen models and in the mean.

    `beaufort testbed rho --y vid-robust-pm10 --select resnet50-lp`

    An interval covers the images of both test sets and which models the trend was fitted on. It does not
    cover a new training of the model, nor how the models fitted on scatter around the trend.
    """
    from beaufort.testbed import effective_robustness, load_grid
    from beaufort.testbed.json_values import rho_dict

    loaded = load_grid(grid, fit_on=fit_on, images=images_of(n))
    found = effective_robustness(
        loaded,
        _shift(loaded, y),
        x=x,
        select=chosen(model, select),
        scale=scale,
        knee=knee_of(knee),
        level=level,
        resamples=resamples,
        seed=seed,
    )
    told = rho_dict(loaded, found)
    _warn(loaded)
    if as_json:
        _print_json(told)
        return
    ordered = sorted(told["models"], key=lambda one: -(one["rho"] if one["rho"] is not None else -1e9))
    rows = [
        (
            _points(one),
            f"{one['x']:.2f}",
            f"{one['y']:.2f}",
            "extrapolated" if one["extrapolated"] else "",
            one["type"],
            printable(one["model"]),
        )
        for one in ordered
    ]
    typer.echo(table([("rho [interval]", "x", "y", "", "type", "model"), *rows]))
    typer.echo(f"\nmean of {told['n']}: {_points(told)}; {printable(told['x'])} → {printable(told['y'])}")
    lines = "trend" if told["knee"] is None else f"trend with a knee at {told['knee']:.2f} %,"
    typer.echo(f"{lines} fitted on {loaded.fit_rule}; {told['fitted']} are in the fit")
    _tell_notes(told["notes"])
    if all(one["low"] is None for one in told["models"]):
        typer.echo("no intervals: how many images the accuracies rest on is not known; --n tells it")
    else:
        typer.echo(f"{100 * level:g} % intervals, which cover {told['interval_covers']}")
    _tell_missing(told["missing"], "one of the two accuracies")


@app.command()
def tau(
    grid: GridName = "paper",
    y: ShiftOrV2 = None,
    model: Models = None,
    select: Select = None,
    pairs: Annotated[
        Path | None, typer.Option(help="CSV file with model, base_model; the grid's own pairs if not given.")
    ] = None,
    n: Images = None,
    level: Level = 0.95,
    as_json: Json = False,
) -> None:
    """Relative robustness: accuracy under a shift against the model that the intervention was applied to.

    `beaufort testbed tau --y vid-robust-pm10 --select resnet50-lp`
    """
    from beaufort.testbed import load_grid, relative_robustness
    from beaufort.testbed.json_values import tau_dict
    from beaufort.testbed.load import read_pairs

    loaded = load_grid(grid, images=images_of(n))
    own = None if pairs is None else read_pairs(pairs)
    found = relative_robustness(
        loaded, _shift(loaded, y), select=chosen(model, select), pairs=own, level=level
    )
    told = tau_dict(loaded, found)
    _warn(loaded)
    if as_json:
        _print_json(told)
        return
    ordered = sorted(told["models"], key=lambda one: -one["tau"])
    rows = [(_points(one, "tau"), printable(one["model"]), printable(one["base"])) for one in ordered]
    typer.echo(table([("tau [interval]", "model", "made from"), *rows]))
    about = f"{_points(told, 'tau')} on {printable(told['y'])}"
    known = any(one["low"] is not None for one in told["models"])
    ends = f"{100 * level:g} % intervals" if known else "no intervals: --n tells how many images it has"
    typer.echo(f"\nmean of {told['n']}: {about}, {ends}")
    _tell_missing(told["missing"], "a base model, or an accuracy")


@app.command()
def correlate(
    grid: GridName = "paper",
    synthetic: Annotated[
        str | None, typer.Option(help="A setting, avg_corruptions or avg_pgd; all if not given.")
    ] = None,
    natural: Annotated[str | None, typer.Option(help="A natural shift; all if not given.")] = None,
    x: Clean = None,
    select: Select = None,
    fit_on: FitOn = None,
    scale: ScaleName = "logit",
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
        scale=scale,
    )
    told = [correlation_dict(loaded, one, points=len(found) == 1) for one in found]
    _warn(loaded)
    if as_json:
        _print_json(told[0] if len(told) == 1 else {"grid": loaded.name, "correlations": told})
        return
    columns = list(dict.fromkeys(one.natural for one in found))
    rows: dict[str, dict[str, str]] = {}
    for one in found:
        rows.setdefault(one.synthetic, {})[one.natural] = f"{one.pearson:+z.2f} ({one.n})"
    lines = [(name, *(cells.get(column, "–") for column in columns)) for name, cells in rows.items()]
    typer.echo(table([("Pearson (n)", *columns), *lines]))
    asked = [*(() if synthetic else synthetic_shifts(loaded)), *(() if natural else natural_shifts(loaded))]
    if absent := [name for name in asked if name not in rows and name not in columns]:
        why = "too few models have them, or those do not differ"
        typer.echo(f"\nleft out, because {why}: {printable(', '.join(absent))}")


@app.command()
def plot(
    grid: GridName = "paper",
    y: Shift = None,
    x: Clean = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A page of the whole grid (.html), or one figure (.svg, .png)."),
    ] = Path("testbed.html"),
    scores: Annotated[
        Path | None, typer.Option(help="CSV with setting, accuracy, n: a model of your own, highlighted.")
    ] = None,
    name: Annotated[str, typer.Option(help="What your own model is called.")] = "your model",
    fit_on: FitOn = None,
    scale: ScaleName = "logit",
) -> None:
    """Draw a grid: an interactive page, or a figure for a paper.

    `beaufort testbed plot -o testbed.html`

    `beaufort testbed plot --y objectnet -o objectnet.svg`
    """
    from beaufort.testbed import load_grid
    from beaufort.testbed.figures import write_figure
    from beaufort.testbed.page import write_page
    from beaufort.testbed.scores import read_scores

    loaded = load_grid(grid, fit_on=fit_on)
    own = None if scores is None else read_scores(scores)
    kind = output.suffix.lower()
    if kind in {".html", ".htm"}:
        write_page(loaded, output, y=y, x=x, scale=scale, own=own, own_name=name)
    elif kind in {".svg", ".png"}:
        write_figure(loaded, output, y=_shift(loaded, y), x=x, scale=scale, own=own, own_name=name)
    else:
        raise OptionError(f"output must end in .html, .svg or .png, got {output}")
    many = counted(len(loaded.models), "model")
    typer.echo(f"{printable(output)}: {many}, {byte_size(output.stat().st_size)}")


@app.command()
def study(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for figures and tables.")] = Path(
        "natural-shifts"
    ),
) -> None:
    """Rebuild the study: the paper's five figures, and what changed since, with timm's models.

    `beaufort testbed study --output natural-shifts`
    """
    from beaufort.testbed.study import write_study

    for path in write_study(output):
        typer.echo(printable(path))


@app.command()
def architectures(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the table (CSV) and the figure (SVG).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare architectures: mCE, relative mCE and the distance from the line of accuracy, of 35 networks.

    `beaufort testbed architectures -o architectures`
    """
    from dataclasses import asdict

    from beaufort.testbed.architectures import study_architectures, write_architectures

    found = study_architectures()
    written = [] if output is None else list(write_architectures(found, output))
    if as_json:
        _print_json(asdict(found))
        return
    header = ("network", "family", "clean error", "mCE", "relative mCE", "noise CE", "off the line [95 %]")
    rows = [
        (
            one.name,
            one.family,
            *(f"{number:.1f}" for number in (one.clean_error, one.mce, one.relative_mce, one.noise_ce)),
            f"{one.residual:+.1f} [{one.residual_interval.low:+.1f}, {one.residual_interval.high:+.1f}]",
        )
        for one in found.networks
    ]
    typer.echo(table([header, *rows]))
    sign = "-" if found.offset < 0 else "+"
    typer.echo(
        f"\nline through {found.fitted} standard networks: mCE = {found.slope:.3f} × clean error "
        f"{sign} {abs(found.offset):.1f}, r² {found.r2:.2f}; below it is more robust than accuracy explains. "
        "Intervals are over the choice of these networks"
    )
    for path in written:
        typer.echo(printable(path))


def _shift(grid: Grid, y: str | None) -> str:
    """The shift that `--y` names, ImageNetV2 if it is not given."""
    if y is not None:
        return y
    try:
        return grid.setting("imagenetv2").name
    except UnknownNameError:
        shifts = [name for name, one in grid.settings.items() if one.clean in grid.settings]
        names = ", ".join(shifts or grid.settings)
        known = "`beaufort testbed ls --grid …` lists what there is" if len(grid.settings) > 20 else names
        raise OptionError(
            f"--y must name a shift of the grid {grid.name}, got none, and the usual one, ImageNetV2, is not "
            f"there; choose from: {known}"
        ) from None


def _print_json(told: Any) -> None:
    typer.echo(json.dumps(told, indent=2, allow_nan=False, ensure_ascii=False))


def _warn(grid: Grid) -> None:
    if caveat := grid.facts.get("caveat"):
        typer.echo(f"warning: the grid {printable(grid.name)}: {printable(caveat)}", err=True)


def _tell_notes(notes: list[str], about: str = "") -> None:
    for note in notes:
        typer.echo(printable(f"{about}{note}"))


def _points(one: dict[str, Any], key: str = "rho") -> str:
    if one[key] is None:
        return "not defined"
    if one["low"] is None:
        return f"{one[key]:+z.2f}"
    return f"{one[key]:+z.2f} [{one['low']:+z.2f}, {one['high']:+z.2f}]"


def _number(value: float, ends: dict[str, float], spec: str) -> str:
    return f"{value:{spec}} [{ends['low']:{spec}}, {ends['high']:{spec}}]"


def _tell_missing(names: list[str], what: str) -> None:
    if names:
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        typer.echo(f"{len(names)} chosen lack {what}: {printable(shown)}")

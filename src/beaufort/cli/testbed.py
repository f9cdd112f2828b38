"""`beaufort testbed`: effective and relative robustness in a grid of models and test sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import byte_size, comma_list, counted, printable
from beaufort.cli._console import MOST_LINES, print_json, table
from beaufort.cli._evaluation import predictions_bar
from beaufort.cli._options import (
    DryRun,
    Filter,
    Format,
    Grid,
    Intervals,
    Json,
    Limit,
    ModelOptions,
    Models,
    Only,
    Output,
    RequiredModel,
    Select,
    Shift,
    Store,
    Suite,
    Trend,
    model_options,
    parse_intervals,
    parse_trend,
)

if TYPE_CHECKING:
    from beaufort import testbed

app = typer.Typer(
    no_args_is_help=True, help="Measure effective and relative robustness in a grid of models and test sets."
)

_SEED = 720257663


def list_grids(name: str | None, as_json: bool) -> None:
    """Print the grids that come with the package, or the contents of one."""
    from beaufort.testbed import GRIDS, load_grid
    from beaufort.testbed.json_values import grid_dict

    if name is None:
        if as_json:
            print_json({"grids": [grid_dict(load_grid(known)) for known in GRIDS]})
        else:
            typer.echo(table([("grid", "description"), *GRIDS.items()]))
        return
    grid = load_grid(name)
    facts = grid_dict(grid)
    if as_json:
        names = {
            "model_names": grid.models,
            "setting_names": grid.settings,
            "aggregate_names": grid.aggregates,
        }
        print_json(facts | {key: list(some) for key, some in names.items()})
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{name}: {count}" for name, count in value.items())
        typer.echo(f"{key.replace('_', ' ')}: {printable(value)}")
    if grid.members:
        origins = [
            (one.name, str(len(one.models)), one.facts.get("source", ""), one.facts.get("date", ""))
            for one in grid.members
        ]
        typer.echo("\n" + table([("grid", "models", "source", "date"), *origins]))
    rows = [(name, s.kind, s.group, str(s.images or ""), s.clean or "") for name, s in grid.settings.items()]
    typer.echo("\n" + table([("setting", "kind", "group", "images", "standard accuracy"), *rows]))


@app.command()
def run(
    model: RequiredModel,
    data_root: Annotated[
        Path,
        typer.Option(
            "--data-root", help="Directory to search for published test sets, with its subdirectories."
        ),
    ],
    *,
    store: Store = "results",
    output: Output = Path("testbed.html"),
    grid: Grid = "paper",
    only: Only = None,
    limit: Limit = None,
    options: ModelOptions = None,
    filters: Filter = None,
    trend: Trend = None,
    intervals: Intervals = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Evaluate a model on all published test sets below a directory, and place it among those of a grid.

    `beaufort testbed run --model timm:resnet50.a1_in1k --data-root datasets`

    Sets are found by their layout, whatever their directories are called: ImageNet validation, ImageNetV2,
    ObjectNet, ImageNet-A, -R, -Sketch, -C, Stylized-ImageNet, ImageNet-Vid-Robust and YTBB-Robust. Each is
    evaluated with validation images of the same classes. The table has the accuracy that standard models of
    the same clean accuracy reach, and effective robustness rho; the page shows the model among all others.

    `--only` selects sets; `--dry-run` lists the sets found and the sources of the others. Stored predictions
    are reused. Keys of `--intervals`: level, seed. The exit code is 1 if a set could not be evaluated or
    images could not be read.
    """
    from beaufort.evaluation import LazyModel
    from beaufort.testbed import find_published_sets, load_grid, run_published
    from beaufort.testbed.summary import HEADER, headline, shown_standings, summary_rows
    from beaufort.testbed.testbed_page import write_page

    found = find_published_sets(data_root)
    fit_on, arguments = parse_trend(trend)
    placing = parse_intervals(intervals, level=0.95, seed=_SEED)
    loaded = load_grid(grid, fit_on=fit_on)
    if dry_run:
        _show_found(found, as_json)
        return
    if not as_json:
        for name, one in found.missing.items():
            typer.echo(f"not found: {name} ({one.layout}); source: {one.source}", err=True)
    lazy = LazyModel(model, model_options(options, filter=filters))
    with predictions_bar() as progress:
        result = run_published(
            lazy,
            data_root,
            store,
            grid=loaded,
            only=comma_list(only or ""),
            limit=limit,
            progress=progress,
            **arguments,
            **placing,
        )
    placement = result.placement
    answer = " ".join(headline(placement, loaded, result.model)).rstrip()
    write_page(result.grid, output, highlight=[result.model], **arguments)
    if as_json:
        more = {
            "model": result.model,
            "answer": answer,
            "page": str(output),
            "failures": dict(result.failures),
        }
        print_json({**more, **placement.as_dict()})
    else:
        typer.echo(table([HEADER, *summary_rows(shown_standings(placement, loaded))]))
        typer.echo(f"\n{printable(answer)}")
        typer.echo(f"trend of the grid {printable(loaded.name)}, fitted on {loaded.fit_rule}")
        typer.echo(f"page: {printable(output)}")
    for note in (*result.notes, *result.found.notes):
        typer.echo(f"note: {printable(note)}", err=True)
    for warning in placement.warnings:
        typer.echo(f"warning: {printable(warning)}", err=True)
    for suite, reason in result.failures:
        typer.echo(f"failed: {suite}: {printable(reason)}", err=True)
    for problem in result.problems[:MOST_LINES]:
        typer.echo(f"problem: {printable(problem)}", err=True)
    if result.failures or result.problems:
        raise typer.Exit(1)


def _show_found(found: testbed.FoundSets, as_json: bool) -> None:
    """Print which published sets were found, the suites to run, and the source of the others."""
    runs = list(found.runs())
    if as_json:
        print_json(
            {
                "found": {name: str(path) for name, path in found.places.items()},
                "suites": runs,
                "missing": {
                    name: {"layout": one.layout, "source": one.source} for name, one in found.missing.items()
                },
                "notes": list(found.notes),
            }
        )
        return
    rows = [(name, printable(path)) for name, path in found.places.items()]
    typer.echo(table([("found", "directory"), *rows]))
    typer.echo(f"\nsuites: {', '.join(runs) or 'none'}\n")
    typer.echo(
        table(
            [("missing", "contents", "source"), *((n, o.layout, o.source) for n, o in found.missing.items())]
        )
    )
    for note in found.notes:
        typer.echo(f"note: {printable(note)}", err=True)


@app.command()
def fit(
    shift: Shift = None,
    *,
    grid: Grid = "paper",
    trend: Trend = None,
    intervals: Intervals = None,
    as_json: Json = False,
) -> None:
    """Fit the trend: the accuracy under a shift that a standard accuracy predicts.

    `beaufort testbed fit imagenetv2`

    Without SHIFT, all natural shifts of the grid are fitted. The fit uses least squares on logit axes; the
    intervals (95 %) are bootstrap intervals over the models that it uses. Keys of `--intervals`: resamples,
    seed.
    """
    from beaufort.testbed.json_values import fits_dict

    fit_on, arguments = parse_trend(trend, knee=True)
    loaded = _load_grid(grid, fit_on=fit_on)
    arguments |= parse_intervals(intervals, resamples=1000, seed=_SEED)
    result = fits_dict(loaded, shift, **arguments)
    if as_json:
        print_json(result["fits"][0] if shift else result)
        return
    rows = []
    for one in result["fits"]:
        lines = [("", one)]
        if one["knee"] is not None:
            lines = [("up to ", one["left"]), ("above ", one["right"])]
        for side, line in lines:
            where = f" ({side}{one['knee']:.2f} %)" if side else ""
            numbers = (_number(line[name], line[f"{name}_interval"]) for name in ("slope", "intercept"))
            rows.append((f"{one['x']} → {one['y']}{where}", *numbers, f"{line['r2']:.3f}", str(line["n"])))
    typer.echo(table([("fit", "slope", "intercept", "r²", "n"), *rows]))
    typer.echo(f"\n{arguments['scale']} axes; fitted on {loaded.fit_rule}; 95 % bootstrap intervals")
    for one in result["fits"]:
        for note in one["notes"]:
            typer.echo(printable(note if shift else f"{one['y']}: {note}"))
    for reason in result["not_fitted"].values():
        typer.echo(f"not fitted: {printable(reason)}")


@app.command()
def robustness(
    shift: Shift = None,
    *,
    grid: Grid = "paper",
    select: Select = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Report relative robustness over these pairs: grid (the grid's own), or a CSV file with the "
            "columns model and base_model."
        ),
    ] = None,
    n: Annotated[
        list[str] | None,
        typer.Option("--n", help="Number of images of a setting as SETTING=IMAGES (repeatable)."),
    ] = None,
    trend: Trend = None,
    intervals: Intervals = None,
    as_json: Json = False,
) -> None:
    """Print effective robustness (points above the trend), or relative robustness with --pairs.

    `beaufort testbed robustness vid-robust-pm10 --select resnet50-lp`

    `beaufort testbed robustness vid-robust-pm10 --select resnet50-lp --pairs grid` prints the accuracy under
    the shift minus that of the model from which each was made.

    SHIFT is ImageNetV2 by default. The measurement interval of effective robustness covers the images of both
    test sets and the choice of models that the trend is fitted on. The prediction interval covers the
    scatter of these models around the trend: a model is above or below if it lies outside. Keys of
    `--intervals`: level, and resamples and seed without `--pairs`.

    `--trend x=val,x=SETTING` predicts from the accuracies on several in-distribution test sets, for models
    that were not all trained on ImageNet alone.
    """
    if pairs is not None:
        if trend is not None:
            raise OptionError("--trend and --pairs cannot be used together: relative robustness has no trend")
        _print_relative(shift, _load_grid(grid, images=_image_counts(n)), select, pairs, intervals, as_json)
        return
    from beaufort.testbed import effective_robustness
    from beaufort.testbed.json_values import rho_dict

    fit_on, arguments = parse_trend(trend, knee=True, several=True)
    loaded = _load_grid(grid, fit_on=fit_on, images=_image_counts(n))
    arguments |= parse_intervals(intervals, level=0.95, resamples=1000, seed=_SEED)
    chosen = effective_robustness(loaded, shift or loaded.default_shift(), select=select or (), **arguments)
    result = rho_dict(loaded, chosen)
    if as_json:
        print_json(result)
        return
    rows = []
    for one in sorted(result["models"], key=lambda one: -(one["rho"] if one["rho"] is not None else -1e9)):
        beyond = "extrapolated" if one["extrapolated"] else ""
        cleans = (one["x"], *one.get("x_further", ()))
        accuracies = ", ".join(f"{clean:.2f}" for clean in cleans), f"{one['y']:.2f}"
        place = "" if one["percentile"] is None else f"{min(max(one['percentile'], 0.1), 99.9):.1f}"
        names = one["type"], printable(one["model"])
        rows.append((_points(one), one["verdict"], place, *accuracies, beyond, *names))
    heads = ("rho [interval]", "scatter", "percentile", "x", "y", "", "type", "model")
    typer.echo(table([heads, *rows]))
    mean = f"mean of {counted(result['n'], 'model')}: {_points(result)}"
    typer.echo(f"\n{mean}; {printable(result['x'])} → {printable(result['y'])}")
    knee = "" if result["knee"] is None else f" with a knee at {result['knee']:.2f} %,"
    typer.echo(f"trend{knee} fitted on {loaded.fit_rule}; {result['fitted']} of these models are in the fit")
    for note in result["notes"]:
        typer.echo(printable(note))
    if all(one["low"] is None for one in result["models"]):
        typer.echo("no intervals: the number of images is unknown; pass it with --n")
    else:
        typer.echo(f"{100 * arguments['level']:g} % measurement intervals cover {result['interval_covers']}")
    typer.echo(
        f"scatter: above, below or within the {100 * arguments['level']:g} % prediction interval of the "
        "fitted models, and the percentile among them"
    )
    _print_missing(result["missing"], "one of the two accuracies")


def _print_relative(
    shift: str | None,
    grid: testbed.Grid,
    select: list[str] | None,
    pairs: str,
    intervals: list[str] | None,
    as_json: bool,
) -> None:
    from beaufort.testbed import relative_robustness
    from beaufort.testbed.json_values import tau_dict
    from beaufort.testbed.load import read_pairs

    level = parse_intervals(intervals, level=0.95)["level"]
    own = None if pairs == "grid" else read_pairs(Path(pairs))
    shift = shift or grid.default_shift()
    result = tau_dict(grid, relative_robustness(grid, shift, select=select or (), pairs=own, level=level))
    if as_json:
        print_json(result)
        return
    rows = [
        (_points(one, "tau"), printable(one["model"]), printable(one["base"]))
        for one in sorted(result["models"], key=lambda one: -one["tau"])
    ]
    typer.echo(table([("tau [interval]", "model", "base model"), *rows]))
    known = any(one["low"] is not None for one in result["models"])
    ends = f"{100 * level:g} % intervals" if known else "no intervals: pass the number of images with --n"
    mean = f"mean of {counted(result['n'], 'model')}: {_points(result, 'tau')}"
    typer.echo(f"\n{mean} on {printable(result['y'])}, {ends}")
    _print_missing(result["missing"], "a base model, or an accuracy")


@app.command()
def correlate(
    synthetic: Annotated[
        str | None,
        typer.Argument(
            metavar="[SYNTHETIC]", help="A setting, avg_corruptions, avg_pgd or all; all by default."
        ),
    ] = None,
    natural: Annotated[
        str | None,
        typer.Argument(metavar="[NATURAL]", help="A natural shift or all; all by default."),
    ] = None,
    *,
    grid: Grid = "paper",
    select: Select = None,
    trend: Trend = None,
    as_json: Json = False,
) -> None:
    """Correlate effective robustness to synthetic shifts with that to natural ones.

    `beaufort testbed correlate avg_pgd imagenetv2 --select v1`

    `beaufort testbed correlate all objectnet`

    The correlation is over the models that are not standard; each trend is fitted on all standard models that
    have its two accuracies.
    """
    from beaufort.testbed import correlation_table
    from beaufort.testbed.correlation import natural_shifts, synthetic_shifts
    from beaufort.testbed.json_values import correlation_dict

    synthetic, natural = (None if name == "all" else name for name in (synthetic, natural))
    fit_on, arguments = parse_trend(trend)
    loaded = _load_grid(grid, fit_on=fit_on)
    correlations = correlation_table(
        loaded,
        synthetic=[synthetic] if synthetic else None,
        natural=[natural] if natural else None,
        select=select or (),
        **arguments,
    )
    if as_json:
        values = [correlation_dict(loaded, one, points=len(correlations) == 1) for one in correlations]
        print_json(values[0] if len(values) == 1 else {"grid": loaded.name, "correlations": values})
        return
    columns = list(dict.fromkeys(one.natural for one in correlations))
    rows: dict[str, dict[str, str]] = {}
    for one in correlations:
        rows.setdefault(one.synthetic, {})[one.natural] = f"{one.pearson:+z.2f} ({one.n})"
    lines = [(name, *(cells.get(column, "–") for column in columns)) for name, cells in rows.items()]
    typer.echo(table([("Pearson (n)", *columns), *lines]))
    names = [*(() if synthetic else synthetic_shifts(loaded)), *(() if natural else natural_shifts(loaded))]
    if missing := [name for name in names if name not in rows and name not in columns]:
        typer.echo(
            f"\nomitted (too few models with an accuracy, or equal accuracies for all models):  "
            f"{printable(', '.join(missing))}"
        )


@app.command()
def agreement(
    store: Annotated[str, typer.Argument(help="Directory or URL of a store.")],
    *,
    suite: Suite = None,
    model: Models = None,
    as_json: Json = False,
) -> None:
    """Estimate accuracies under shifts without labels, from how often models agree.

    `beaufort testbed agreement results --suite my-shifts`

    Labels of clean images are used, those of shifted images are not. The estimates follow a line through the
    agreements of all pairs of at least three models (agreement-on-the-line); they are reliable only if the
    agreements lie on a line. Measured accuracies are printed for comparison where labels exist.
    """
    from beaufort.testbed import agreement_lines
    from beaufort.testbed.agreement import RELIABLE_R2
    from beaufort.testbed.json_values import agreement_dict

    found = agreement_lines(store, suite=suite, models=model)
    if as_json:
        print_json({"shifts": [agreement_dict(one) for one in found]})
        return
    for one in found:
        typer.echo(
            f"{printable(one.shifted)} ({one.images[1]:,} images) over {printable(one.clean)}: agreements of "
            f"{counted(one.pairs, 'pair')} have slope {one.line.slope:.3f}, r² {one.line.r2:.3f}"
        )
        rows = [
            (printable(row.model), *map(_percentage, (row.clean, row.estimated, row.on_line, row.measured)))
            for row in one.models
        ]
        typer.echo(table([("model", "clean", "estimated", "on the line", "measured"), *rows]))
        if one.error is not None:
            typer.echo(f"mean absolute error of the estimates: {one.error:.2f} points")
        if not one.reliable:
            typer.echo(
                f"warning: the agreements on {printable(one.shifted)} do not lie on a line (r² below "
                f"{RELIABLE_R2}); do not rely on the estimates",
                err=True,
            )
        typer.echo()


def _percentage(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} %"


@app.command()
def export(
    shift: Shift = None,
    *,
    grid: Grid = "paper",
    model: Models = None,
    trend: Trend = None,
    format: Format = None,  # noqa: A002  the option's name
    output: Output = Path("testbed.html"),
) -> None:
    """Write a grid as an interactive page (.html), a figure (.svg, .png) or a table (.csv).

    `beaufort testbed export -o testbed.html`

    `beaufort testbed export objectnet --grid paper+my-net.csv -o objectnet.svg`

    `beaufort testbed export --grid paper+results --format cells -o grid.csv`

    Models of `--model` are drawn as stars; by default, those that `--grid A+B` adds to A. Formats:
    html, svg, png, csv (a column for each setting) and cells (CSV with a row for each accuracy: number of
    images, classes, convention, preprocessing, fingerprint, date, source, …). `--grid` reads both tables.
    """
    from beaufort.testbed.export import write_cells, write_grid
    from beaufort.testbed.figures import write_figure
    from beaufort.testbed.testbed_page import write_page

    fit_on, arguments = parse_trend(trend)
    kind = format or _FORMATS.get(output.suffix.lower())
    if kind not in {*_FORMATS.values(), "cells"}:
        if format is not None:
            raise OptionError(f"--format must be html, svg, png, csv or cells, got {format!r}")
        raise OptionError(f"output must end in .html, .svg, .png or .csv, got {output}")
    loaded = _load_grid(grid, fit_on=fit_on)
    if kind in {"csv", "cells"}:
        if shift is not None or model is not None:
            raise OptionError("SHIFT and --model cannot be used with a table, which has all models")
        (write_cells if kind == "cells" else write_grid)(loaded, output)
    elif kind == "html":
        write_page(loaded, output, y=shift, highlight=model, **arguments)
    else:
        write_figure(loaded, output, y=shift or loaded.default_shift(), highlight=model, **arguments)
    models = counted(len(loaded.models), "model")
    typer.echo(f"{printable(output)}: {models}, {byte_size(output.stat().st_size)}")


_FORMATS = {".html": "html", ".htm": "html", ".svg": "svg", ".png": "png", ".csv": "csv"}


def _load_grid(name: str, **options: Any) -> testbed.Grid:
    from beaufort.testbed import load_grid

    grid = load_grid(name, **options)
    if caveat := grid.facts.get("caveat"):
        typer.echo(f"warning: the grid {printable(grid.name)}: {printable(caveat)}", err=True)
    return grid


def _image_counts(texts: list[str] | None) -> dict[str, int]:
    counts = {}
    for text in texts or []:
        setting, _, count = text.rpartition("=")
        if not setting or not count.isdigit() or int(count) < 1:
            raise OptionError(f"--n must be SETTING=IMAGES with a positive integer, got {text!r}")
        counts[setting] = int(count)
    return counts


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
        first = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        typer.echo(f"{counted(len(names), 'selected model')} without {what}: {printable(first)}")

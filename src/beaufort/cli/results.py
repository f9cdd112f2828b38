"""`beaufort results`: publish, verify, merge and query stored results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import byte_size, counted, printable
from beaufort.cli._console import MOST_LINES, table
from beaufort.cli._evaluation import predictions_bar
from beaufort.cli._options import (
    Baseline,
    Delete,
    Device,
    Format,
    Json,
    ModelOptions,
    Models,
    Only,
    OptionalOutput,
    Output,
    Seed,
    SeveralData,
    Store,
    Suite,
    Title,
    data_by_name,
    model_options,
    parse_keys,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from beaufort.results import Rerun, Verification
    from beaufort.store import Finding

app = typer.Typer(
    help="Publish, verify, merge and query stored results.", no_args_is_help=True, rich_markup_mode="markdown"
)

Location = Annotated[str, typer.Argument(help="Directory or URL of the store.")]


@app.callback()
def results() -> None:
    """Publish, verify, merge and query stored results.

    `beaufort results publish results -o bundle`

    `beaufort results verify bundle`
    """


@app.command()
def publish(
    store: Location,
    output: Output,
    *,
    suite: Suite = None,
    model: Models = None,
    seed: Seed = None,
    baseline: Baseline = None,
    only: Only = None,
    title: Title = None,
    format: Format = None,  # noqa: A002  the option's name
    hub: Annotated[
        list[str] | None,
        typer.Option(
            "--hub",
            metavar="KEY=VALUE,…",
            help="Metadata of the hub formats: dataset=ORGANIZATION/NAME (huggingface); organization=NAME, "
            "developer=NAME, relationship=first_party, third_party, collaborative or other, instances=no "
            "(every-eval-ever); url=ADDRESS of the results.",
        ),
    ] = None,
) -> None:
    """Write the scores and predictions of a store to a bundle that others can verify.

    `beaufort results publish results -o bundle`

    `beaufort results publish bundle -o hub --format huggingface --hub dataset=lab/imagenet-c`

    `beaufort results publish bundle -o eee --format every-eval-ever --hub organization=Lab`

    `beaufort results publish results -o bundle --only classes --title "ResNet-50, January"`

    The bundle has every score with its interval, the five most probable classes of every image, their
    probability and losses, the versions and commands that computed them, and the digests of the models, the
    data and its own files. `--only classes` omits probabilities: the bundle is smaller, but has no
    calibration. Commands that read a store read a bundle as well.

    `--format huggingface` writes `.eval_results` and model cards for model repositories, and `eval.yaml` for
    a dataset repository; `--format every-eval-ever` writes records with all predictions as instances.
    """
    from beaufort.results import publish as write_bundle

    facts = parse_keys("--hub", hub, _HUB_KEYS)
    if format not in (None, "bundle"):
        if only or title:
            raise OptionError(f"--only and --title cannot be used with --format {format}")
        _export(store, output, format, facts, suite=suite, models=model, seed=seed, baseline=baseline)
        return
    if facts:
        raise OptionError(f"--hub requires --format {' or '.join(_HUBS)}")
    if only not in (None, "classes"):
        raise OptionError(f"--only must be classes, got {only!r}")
    bundle = write_bundle(
        store,
        output,
        suite=suite,
        models=model or None,
        seed=seed,
        baseline=baseline,
        title=title,
        probabilities=only is None,
    )
    rows = sum(piece.stop - piece.start for piece in bundle.entries)
    size = sum(one["bytes"] for one in bundle.manifest["files"].values())
    typer.echo(
        f"{printable(output)}: {counted(rows, 'prediction')} of "
        f"{counted(len(bundle.manifest['run']['models']), 'model')}, {byte_size(size)}"
    )
    typer.echo(f"digest: {bundle.digest}")


_HUBS = ("huggingface", "every-eval-ever")
_HUB_KEYS = ("dataset", "organization", "developer", "relationship", "url", "instances")


def _export(
    store: str,
    output: Path,
    format: str,  # noqa: A002  the option's name
    facts: dict[str, Any],
    *,
    suite: str | None,
    models: list[str] | None,
    seed: int | None,
    baseline: str | None,
) -> None:
    """Write the scores in the format of a hub."""
    from beaufort.report import export_every_eval_ever, export_huggingface
    from beaufort.results import open_parts, score

    if format not in _HUBS:
        raise OptionError(f"--format must be one of bundle, {', '.join(_HUBS)}, got {format!r}")
    mine = ("dataset", "url") if format == "huggingface" else tuple(k for k in _HUB_KEYS if k != "dataset")
    if other := [key for key in facts if key not in mine]:
        raise OptionError(f"{other[0]} in --hub cannot be used with --format {format}")
    needed = mine[0]
    if needed not in facts:
        raise OptionError(f"--format {format} requires --hub {needed}=…")
    if facts.get("instances", "yes") not in ("yes", "no"):
        raise OptionError(f"instances in --hub must be yes or no, got {facts['instances']!r}")
    parts = open_parts(store, suite=suite, models=models or None, seed=seed)
    scores = [score(part, baseline=baseline, calibration=False) for part in parts]
    if format == "huggingface":
        export_huggingface(scores, output, **facts)
    else:
        instances = facts.pop("instances", "yes") == "yes"
        export_every_eval_ever(scores, output, instances=instances, **facts)
    names = {one.model for part in scores for one in part.models}
    typer.echo(f"{printable(output)}: {counted(len(names), 'model')}")


@app.command()
def query(
    sql: Annotated[
        str | None,
        typer.Argument(
            help="SQL query over the views `cells`, `pieces` and `predictions`; a list of the cells by "
            "default.",
            show_default=False,
        ),
    ] = None,
    store: Store = "results",
    output: OptionalOutput = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Allow SQL to read and write any file and to load extensions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Query a result store in SQL, or list its cells.

    `beaufort results query --store results`

    `beaufort results query "select model, avg(accuracy) from cells group by model"`

    `beaufort results query --output cells.csv` writes all columns; .parquet and .json work as well.

    `cells` has one row per model and condition, `pieces` one per file, `predictions` one per image. A query
    can read only these views, unless `--unsafe` is given.
    """
    from beaufort._core.files import write_output
    from beaufort.store import FileStore, to_bytes, to_json
    from beaufort.store import query as run_query

    if sql is None and output is None:
        columns = "model, condition, images, unread, accuracy, accuracy5, nll"
        sql = f"select {columns} from cells order by model, condition"
    elif sql is None:
        sql = "select * from cells order by model, condition, fingerprint"
    if output is not None and output.suffix not in (".csv", ".parquet", ".json"):
        raise OptionError(f"--output must end in .csv, .parquet or .json, got {output}")
    result = run_query(FileStore(store), sql, unsafe=unsafe)
    if output is not None:
        write_output(output, to_bytes(result, output.suffix))
        if not as_json:
            typer.echo(f"{counted(result.num_rows, 'row')} written to {printable(output)}")
    if as_json:
        typer.echo(to_json(result))
    elif output is None:
        _print_table(result)


@app.command()
def verify(
    location: Annotated[
        str,
        typer.Argument(metavar="[STORE|BUNDLE]", help="Directory or URL of a store, or a bundle."),
    ] = "results",
    *,
    rerun: Annotated[
        int | None,
        typer.Option(
            "--rerun",
            min=1,
            help="Repeat N random predictions of a bundle with --model and --data, and bound the proportion "
            "of wrong ones.",
        ),
    ] = None,
    model: Models = None,
    data: SeveralData = None,
    options: ModelOptions = None,
    device: Device = None,
    seed: Seed = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Move damaged files and duplicates to `quarantine`, join overlapping files, and delete "
            "unfinished files of killed runs.",
        ),
    ] = False,
    delete: Delete = False,
    as_json: Json = False,
) -> None:
    """Verify a bundle, or read every file of a store; the exit code is 1 if there is a problem.

    `beaufort results verify bundle`

    `beaufort results verify bundle --rerun 300 --model net.onnx --data imagenet/val`

    `beaufort results verify results --repair`

    In a **bundle**, every file is compared with its digest, and every number is recomputed from the
    predictions. `--rerun` repeats a random sample of the predictions of the given models, and prints an exact
    95 % upper bound on the proportion of wrong ones. The sample is a new one each time, so that nobody can
    prepare for it; `--seed` repeats an earlier sample.

    In a **store**, every file is read completely. The next `beaufort run` recomputes what is damaged; rows
    that are in two files count once. `--delete` repairs as well, and empties `quarantine`. A repair leaves
    files that cannot be read at the moment, or that a newer version wrote. Its exit code is 0.
    """
    from beaufort.results import is_bundle

    if is_bundle(location):
        if repair or delete:
            raise OptionError("--repair and --delete apply to stores; publish a damaged bundle again")
        if rerun is None and (model or data or options or device or seed is not None):
            raise OptionError("--model, --data, --set, --device and --seed require --rerun")
        _verify_bundle(location, rerun, model, data, model_options(options, device=device), seed, as_json)
        return
    if rerun is not None or model or data or options or device or seed is not None:
        raise OptionError(f"--rerun requires a bundle, and {location} is not one")
    _verify_store(location, repair=repair or delete, delete=delete, as_json=as_json)


def _verify_store(location: str, *, repair: bool, delete: bool, as_json: bool) -> None:
    from beaufort.store import FileStore

    opened = FileStore(location)
    opened.check_exists()
    findings = opened.collect(delete=delete) if repair else opened.verify()
    if as_json:
        typer.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    elif repair:
        _print_findings(findings)
        typer.echo(_repaired(findings) + "; quarantine emptied" * delete)
    else:
        typer.echo(f"{counted(len(opened.pieces()), 'file')}, {counted(len(findings), 'problem')}")
        _print_findings(findings)
    if findings and not repair:
        raise typer.Exit(1)


def _verify_bundle(
    location: str,
    sample: int | None,
    models: list[str] | None,
    data: list[str] | None,
    options: dict[str, Any],
    seed: int | None,
    as_json: bool,
) -> None:
    from beaufort.evaluation import LazyModel
    from beaufort.results import rerun, verify_bundle

    if sample is not None and not (models and data):
        raise OptionError("--rerun requires --model and --data")
    found = verify_bundle(location)
    if not as_json:
        _print_verification(found)
    repeated = None
    if sample is not None and not found.problems:
        lazy = [LazyModel(text, options) for text in models or []]
        with predictions_bar() as progress:
            repeated = rerun(location, sample, lazy, data_by_name(data or []), seed=seed, progress=progress)
    if as_json:
        typer.echo(json.dumps({**vars(found), "rerun": _rerun_facts(repeated)}, indent=2, default=vars))
    elif repeated is not None:
        _print_rerun(repeated)
    if found.problems or (repeated is not None and (repeated.problems or repeated.wrong)):
        raise typer.Exit(1)


def _rerun_facts(repeated: Rerun | None) -> dict[str, Any] | None:
    if repeated is None:
        return None
    bounds = {} if repeated.problems else {"at_most": repeated.at_most, "detects": repeated.detects}
    return {**vars(repeated), **bounds}


def _print_verification(found: Verification) -> None:
    for problem in found.problems[:MOST_LINES]:
        typer.echo(f"problem: {printable(problem)}", err=True)
    typer.echo(
        f"{counted(found.predictions, 'prediction')} of {counted(found.models, 'model')}; "
        f"{counted(found.files, 'file')} as published; {counted(found.numbers, 'number')} recomputed and "
        f"equal; {counted(len(found.problems), 'problem')}"
    )
    if found.digest:
        typer.echo(f"digest: {found.digest}")


def _print_rerun(repeated: Rerun) -> None:
    for problem in repeated.problems[:MOST_LINES]:
        typer.echo(f"problem: {printable(problem)}", err=True)
    if repeated.problems:
        return
    for one in repeated.wrong[:MOST_LINES]:
        typer.echo(
            f"wrong: {printable(one.model)}, {printable(one.condition)}, {printable(one.image)}: published "
            f"{list(one.published)}, repeated {list(one.repeated)}",
            err=True,
        )
    confidence, bound = f"{100 * repeated.level:g} %", f"{100 * repeated.at_most:.2f} %"
    of_all = counted(repeated.population, "prediction")
    typer.echo(
        f"{repeated.sample:,} of {of_all} repeated (seed {repeated.seed}): {len(repeated.wrong):,} wrong. "
        f"With {confidence} confidence, at most {bound} of all are wrong. If 1 % were wrong, such a sample "
        f"would find one with probability {100 * repeated.detects:.1f} %."
    )


@app.command()
def merge(store: Location, other: Annotated[str, typer.Argument(help="The store to copy from.")]) -> None:
    """Copy the predictions that another store has and this one lacks, creating this one if necessary.

    `beaufort results merge results results-of-a-colleague`

    The exit code is 1 if a file of the other store cannot be used.
    """
    from beaufort.store import FileStore

    copied, left = FileStore(store).merge(FileStore(other))
    typer.echo(f"{counted(len(copied), 'file')} copied to {printable(store)}")
    if left:
        typer.echo(f"{counted(len(left), 'file')} of {printable(other)} not copied:", err=True)
        _print_findings(left, err=True)
        raise typer.Exit(1)


def _repaired(findings: list[Finding]) -> str:
    from beaufort.store import TO_SET_ASIDE, Kind

    aside, joined, drafts, left = (
        sum(finding.kind in kinds for finding in findings)
        for kinds in (TO_SET_ASIDE, (Kind.overlap,), (Kind.draft,), (Kind.unreadable, Kind.newer))
    )
    return (
        f"{counted(aside, 'file')} moved to quarantine, {joined} joined with others, "
        f"{counted(drafts, 'unfinished file')} deleted, {left} left unchanged"
    )


def _print_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    for finding in findings:
        typer.echo(f"{printable(finding.path)}: {printable(finding.message)}", err=err)


def _print_table(result: pa.Table) -> None:
    columns = [[_cell(value) for value in column.to_pylist()] for column in result.columns]
    names = list(map(printable, result.column_names))
    typer.echo(table([names, *zip(*columns, strict=True)]) if names else "the query returned no columns")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else printable(value)

"""`beaufort query` and `beaufort store`: query a result store, and maintain it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import counted, printable
from beaufort.cli._console import table
from beaufort.cli._options import Delete, Json, OptionalOutput, Store

if TYPE_CHECKING:
    import pyarrow as pa

    from beaufort.store import Finding

app = typer.Typer(help="Maintain a result store.", no_args_is_help=True, rich_markup_mode="markdown")

Location = Annotated[str, typer.Argument(help="Directory or URL of the store.")]


@app.callback()
def store() -> None:
    """Maintain a result store: verify and repair its files, merge stores.

    `beaufort store verify results`
    """


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

    `beaufort query --store results`

    `beaufort query "select model, avg(accuracy) from cells where corruption is not null group by model"`

    `beaufort query --output cells.csv` writes all columns of the cells; .parquet and .json work as well.

    `cells` has one row per model and condition, `pieces` one per file, `predictions` one per image. A query
    can read nothing but these views, unless `--unsafe` is given.
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
    store: Location = "results",
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
    """Read every file of a store completely; the exit code is 1 if one is damaged or misplaced.

    `beaufort store verify results`

    `beaufort store verify results --repair`

    The next `beaufort run` recomputes what is damaged; rows that are in two files count once. `--delete`
    repairs as well, and empties `quarantine`. A repair leaves files that cannot be read at the moment, or
    that a newer version wrote. Its exit code is 0.
    """
    from beaufort.store import FileStore

    opened = FileStore(store)
    opened.check_exists()
    repair = repair or delete
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


@app.command()
def merge(store: Location, other: Annotated[str, typer.Argument(help="The store to copy from.")]) -> None:
    """Copy the predictions that another store has and this one lacks, creating this one if necessary.

    `beaufort store merge results results-of-a-colleague`

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

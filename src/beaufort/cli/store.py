"""`beaufort store` and `beaufort query`: what a store holds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._console import table
from beaufort.cli._options import DryRun, Json, Store, Unsafe

if TYPE_CHECKING:
    import pyarrow as pa

    from beaufort.store import Finding

app = typer.Typer(help="Look after a store.", no_args_is_help=True, rich_markup_mode="markdown")

Location = Annotated[str, typer.Argument(help="Folder or URL of the store.")]


@app.command("ls")
def ls(store: Location = "results", as_json: Json = False) -> None:
    """List the cells: model, condition, images, accuracy.

    `beaufort store ls results`
    """
    from beaufort.store import FileStore
    from beaufort.store import query as ask

    columns = "model, condition, images, unread, accuracy, accuracy5, nll"
    sql = f"select {columns} from cells order by model, condition"
    _print(ask(FileStore(store), sql), as_json)


@app.command()
def verify(store: Location = "results", as_json: Json = False) -> None:
    """Read every file to the last byte; exit code 1 if one is not as it should be.

    `beaufort store verify results`

    What is damaged, the same `beaufort run` makes anew. Rows that are in two files count once, and the next
    run puts them together.
    """
    from beaufort.store import FileStore

    kept = FileStore(store)
    kept.check_exists()
    findings = kept.verify()
    if as_json:
        typer.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        typer.echo(f"{counted(len(kept.pieces()), 'file')}, {len(findings):,} not as they should be")
        _tell(findings)
    if findings:
        raise typer.Exit(1)


@app.command()
def merge(store: Location, other: Annotated[str, typer.Argument(help="The store to copy from.")]) -> None:
    """Copy what another store has and this one has not; exit code 1 if a file of it cannot be used.

    `beaufort store merge results results-of-a-colleague`

    The first store is made if there is none.
    """
    from beaufort.store import FileStore

    copied, left = FileStore(store).merge(FileStore(other))
    typer.echo(f"{counted(len(copied), 'file')} copied to {printable(store)}")
    if left:
        were = "was" if len(left) == 1 else "were"
        typer.echo(f"{counted(len(left), 'file')} of {printable(other)} {were} not copied:", err=True)
        _tell(left, err=True)
        raise typer.Exit(1)


@app.command()
def gc(
    store: Location = "results",
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete what is set aside, now and earlier.")] = False,
) -> None:
    """Set damaged files and duplicates aside, put overlaps together, delete drafts of killed runs.

    `beaufort store gc results --dry-run`

    Files are set aside in the folder `quarantine` of the store; with --yes they are deleted. A file that
    cannot be read just now, or that a newer version wrote, stays where it is.
    """
    from beaufort.store import TO_SET_ASIDE, FileStore, Kind

    kept = FileStore(store)
    kept.check_exists()
    findings = kept.collect(dry_run=dry_run, delete=yes)
    _tell(findings)
    aside, together, drafts, left = (
        sum(finding.kind in kinds for finding in findings)
        for kinds in (TO_SET_ASIDE, (Kind.overlap,), (Kind.draft,), (Kind.unreadable, Kind.newer))
    )
    would = "would be " * dry_run
    typer.echo(
        f"{counted(aside, 'file')} {would}moved to quarantine, {together} {would}put together with others, "
        f"{counted(drafts, 'draft')} {would}deleted, {left} left as they are"
        + f"; quarantine {would}emptied"
        * yes
    )


def _tell(findings: Iterable[Finding], *, err: bool = False) -> None:
    for finding in findings:
        typer.echo(f"{printable(finding.path)}: {printable(finding.message)}", err=err)


@app.command()
def export(
    store: Location,
    output: Annotated[Path, typer.Argument(help="A file that ends in .csv, .parquet or .json.")],
    sql: Annotated[
        str, typer.Option(help="Which rows; a question as for `beaufort query`.")
    ] = "select * from cells order by model, condition, fingerprint",
    unsafe: Unsafe = False,
) -> None:
    """Write the answer to a question into one file: the summary of all cells if nothing else is asked.

    `beaufort store export results summary.csv`
    """
    from beaufort._core.errors import OptionError
    from beaufort._core.files import write_output
    from beaufort.store import FileStore, to_bytes
    from beaufort.store import query as ask

    if output.suffix not in (".csv", ".parquet", ".json"):
        raise OptionError(f"the output must end in .csv, .parquet or .json, got {output}")
    answer = ask(FileStore(store), sql, unsafe=unsafe)
    write_output(output, to_bytes(answer, output.suffix))
    typer.echo(f"{counted(answer.num_rows, 'row')} written to {printable(output)}")


def query(
    sql: Annotated[str, typer.Argument(help="A question; views are `cells`, `pieces` and `predictions`.")],
    store: Store = "results",
    as_json: Json = False,
    unsafe: Unsafe = False,
) -> None:
    """Ask a store in SQL.

    `beaufort query "select model, avg(accuracy) from cells where corruption is not null group by model"`

    `cells` has a row a model and condition, `pieces` a row a file, `predictions` a row an image. A question
    sees nothing but these views; --unsafe lets it read and write files, and load extensions of DuckDB.
    """
    from beaufort.store import FileStore
    from beaufort.store import query as ask

    _print(ask(FileStore(store), sql, unsafe=unsafe), as_json)


def _print(answer: pa.Table, as_json: bool) -> None:
    from beaufort.store import to_json

    if as_json:
        typer.echo(to_json(answer))
        return
    columns = [[_cell(value) for value in column.to_pylist()] for column in answer.columns]
    names = list(map(printable, answer.column_names))
    typer.echo(table([names, *zip(*columns, strict=True)]) if names else "no answer")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else printable(value)

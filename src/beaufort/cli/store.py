"""`beaufort store` and `beaufort query`: what a store holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort.cli._console import printable, table
from beaufort.cli._options import Json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["app", "query"]

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
    """Read every file to the last byte; exit code 1 if one is damaged, which `beaufort run` does again.

    `beaufort store verify results`
    """
    from beaufort.store import FileStore

    kept = FileStore(store)
    findings = kept.verify()
    if as_json:
        typer.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        typer.echo(f"{len(kept.pieces())} files, {len(findings)} not as they should be")
        for finding in findings:
            typer.echo(f"{printable(finding.path)}: {printable(finding.message)}")
    if findings:
        raise typer.Exit(1)


@app.command()
def merge(store: Location, other: Annotated[str, typer.Argument(help="The store to copy from.")]) -> None:
    """Copy what another store has and this one has not.

    `beaufort store merge results results-of-a-colleague`
    """
    from beaufort.store import FileStore

    copied = FileStore(store).merge(FileStore(other))
    typer.echo(f"{len(copied)} files copied to {printable(store)}")


@app.command()
def gc(
    store: Location = "results",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell, delete nothing.")] = False,
) -> None:
    """Delete drafts of killed runs, damaged files, and files whose rows another one has too.

    `beaufort store gc results --dry-run`
    """
    from beaufort.store import FileStore

    findings = FileStore(store).collect(dry_run=dry_run)
    for finding in findings:
        typer.echo(f"{printable(finding.path)}: {printable(finding.message)}")
    typer.echo(f"{len(findings)} files {'would be ' * dry_run}deleted")


@app.command()
def export(
    store: Location,
    output: Annotated[Path, typer.Argument(help="A file that ends in .csv, .parquet or .json.")],
    sql: Annotated[
        str, typer.Option(help="Which rows; a question as for `beaufort query`.")
    ] = "select * from cells",
) -> None:
    """Write the answer to a question into one file: the summary of all cells if nothing else is asked.

    `beaufort store export results summary.csv`
    """
    from beaufort.errors import OptionError
    from beaufort.files import write_bytes
    from beaufort.store import FileStore, to_bytes
    from beaufort.store import query as ask

    if output.suffix not in (".csv", ".parquet", ".json"):
        raise OptionError(f"the output {output} came; accepted are names that end in .csv, .parquet or .json")
    answer = ask(FileStore(store), sql)
    write_bytes(output, to_bytes(answer, output.suffix))
    typer.echo(f"{answer.num_rows} rows written to {printable(output)}")


def query(
    sql: Annotated[str, typer.Argument(help="A question; views are `cells`, `pieces` and `predictions`.")],
    store: Annotated[str, typer.Option(help="Folder or URL of the store.")] = "results",
    as_json: Json = False,
) -> None:
    """Ask a store in SQL.

    `beaufort query "select model, avg(accuracy) from cells where corruption is not null group by model"`

    `cells` has a row a model and condition, `pieces` a row a file, `predictions` a row an image.
    """
    from beaufort.store import FileStore
    from beaufort.store import query as ask

    _print(ask(FileStore(store), sql), as_json)


def _print(answer: pa.Table, as_json: bool) -> None:
    rows = answer.to_pylist()
    if as_json:
        typer.echo(json.dumps(rows, indent=2, default=str))
        return
    text = [[_cell(value) for value in row.values()] for row in rows]
    typer.echo(table([answer.column_names, *text]) if answer.column_names else "no answer")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else printable(value)

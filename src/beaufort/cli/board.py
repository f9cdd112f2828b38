"""`beaufort board`: write a leaderboard from bundles."""

from __future__ import annotations

from typing import Annotated

import typer

from beaufort._core.text import counted, printable
from beaufort.cli._options import Output, Title


def board(
    bundles: Annotated[str, typer.Argument(help="Directory of bundles, at any depth.")],
    output: Output,
    *,
    title: Title = None,
) -> None:
    """Write static pages that rank the models of many bundles, after verifying them.

    `beaufort board bundles -o site`

    Bundles on the same suite, data and seed share a table, with places, ties, intervals, and effective
    robustness against clean accuracy; every table has a page with all figures and the comparison of two
    models, and every model a page of its own. The pages need no server. A bundle that cannot be verified is
    left out and listed, with exit code 1.
    """
    from beaufort.report import write_board
    from beaufort.testbed import fit_accuracies, shift_expectations

    made = write_board(bundles, output, title=title, fit=fit_accuracies, expect=shift_expectations)
    for one in made.rejected:
        typer.echo(f"left out: {printable(one.name)}: {printable(one.problems[0])}", err=True)
    typer.echo(
        f"{printable(made.folder / 'index.html')}: {counted(made.models, 'model')} of "
        f"{counted(len(made.bundles), 'bundle')} in {counted(made.tables, 'table')}"
    )
    if made.rejected:
        raise typer.Exit(1)

"""`beaufort new`: create a corruption or a study of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Create a template of a corruption or a study.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.callback()
def new() -> None:
    """Create a template of a corruption or a study.

    `beaufort new corruption street_dust`

    `beaufort new study noise-on-digits`
    """


@app.command("corruption")
def new_corruption(
    name: Annotated[str, typer.Argument(help="Name of lower-case letters, digits and _.")],
    folder: Annotated[
        Path | None, typer.Argument(help="Empty or missing directory; NAME by default.", show_default=False)
    ] = None,
) -> None:
    """Create a package with a working corruption, its entry point and its test.

    `beaufort new corruption street_dust`
    """
    import beaufort.suites.conditions  # noqa: F401  registers shifts
    from beaufort._core.new_plugin import new_corruption as write
    from beaufort.corruptions import SUBSETS, corruptions
    from beaufort.suites.shifts import shifts

    written = write(name, folder, taken=[*corruptions, *SUBSETS, *shifts])
    for path in written:
        typer.echo(path)
    typer.echo(f"next: cd {written[0].parent} && pip install -e '.[test]' && pytest")


@app.command("study")
def new_study(
    name: Annotated[str, typer.Argument(help="Name of the study and of its file.")],
    folder: Annotated[
        Path, typer.Argument(help="Directory of the file; the current one by default.", show_default=False)
    ] = Path(),
) -> None:
    """Create a study file: arms with controls, questions, and rules for verdicts.

    The study trains two variants of a network for MNIST and runs unchanged; comments explain what to adapt.

    `beaufort new study noise-on-digits`

    `beaufort reproduce noise-on-digits.yaml --rehearse --output rehearsal`
    """
    from beaufort.studies import new_study as write

    path = write(name, folder)
    typer.echo(path)
    typer.echo(f"next: beaufort reproduce {path} --rehearse --output rehearsal")

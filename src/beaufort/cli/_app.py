"""The command `beaufort` and what all its commands share: the version, and how errors end."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from beaufort import __version__
from beaufort.cli import (
    check,
    compare,
    corrupt,
    data,
    demo,
    gallery,
    gate,
    ls,
    make,
    place,
    report,
    run,
    store,
    testbed,
    validate,
)
from beaufort.errors import BeaufortError

__all__ = ["app", "main"]


class _Group(TyperGroup):
    """The one place where an error becomes a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BeaufortError as error:
            notes = "".join(f" [{note}]" for note in getattr(error, "__notes__", ()))
            typer.echo(f"beaufort: {error}{notes}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo(
                "\nbeaufort: interrupted; what is complete stays, and the same command makes the rest",
                err=True,
            )
            raise typer.Exit(130) from None


app = typer.Typer(
    name="beaufort",
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"beaufort {__version__}")
        raise typer.Exit


@app.callback()
def beaufort(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """How well image classifiers hold up when their input stops looking like their training data.

    `beaufort corrupt photos/ corrupted/ --corruption fog,snow --severity 1-5`

    Exit codes: 0 all is well; 1 some files had problems, told at the end; 2 the command cannot be
    carried out as given; 130 interrupted.
    """


app.command()(demo.demo)
app.command()(corrupt.corrupt)
app.command()(make.make)
app.command()(gallery.gallery)
app.command()(run.run)
app.command()(compare.compare)
app.command()(gate.gate)
app.command()(validate.validate)
app.command()(check.check)
app.command()(report.report)
app.command()(place.place)
app.command()(store.query)
app.add_typer(ls.app, name="ls")
app.add_typer(data.app, name="data")
app.add_typer(store.app, name="store")
app.add_typer(testbed.app, name="testbed")


def main() -> None:
    """Run the command line."""
    _quiet()
    app()


def _quiet() -> None:
    """Pillow warns about a huge picture before it is refused; the refusal says enough."""
    import warnings

    from PIL import Image

    warnings.simplefilter("ignore", Image.DecompressionBombWarning)

"""The command `beaufort` and what all its commands share: the version, and how errors end."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from beaufort import __version__
from beaufort._core.errors import BeaufortError
from beaufort._core.plugins import load_plugins, offered
from beaufort._core.text import printable, without_secrets
from beaufort.cli import (
    check,
    compare,
    corrupt,
    data,
    frames,
    gallery,
    gate,
    ls,
    make,
    new,
    power,
    report,
    run,
    store,
    validate,
)
from beaufort.cli._help import name_types

_COMMANDS = "beaufort.commands"
"""Entry-point group of commands; the applications use it as other packages do."""


class _Group(TyperGroup):
    """The one place where an error becomes a message and an exit code."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        name_types(self)

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            return super().main(*args, **options)
        except OSError as error:  # a full disk behind stdout, a folder that may not be read
            _tell(f"the system refused: {error}")
            _forget_output()
            sys.exit(2)
        except Exception as error:  # Python's own exit code, 1, would say that a gate failed
            typer.echo(printable(without_secrets(traceback.format_exc()), keep="\n").rstrip(), err=True)
            _tell(
                f"the command broke off ({type(error).__name__}): either code of yours failed that it runs, "
                "as a model or a module of --import, or this is a defect of Beaufort's"
            )
            sys.exit(2)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(dict.fromkeys([*super().list_commands(ctx), *offered(_COMMANDS)]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command of the core, or one that an entry point offers."""
        if cmd_name not in self.commands and cmd_name in offered(_COMMANDS):
            try:
                self.commands[cmd_name] = _load_command(cmd_name)
            except Exception as error:  # a package that cannot be imported must not take the others along
                text = f"the command {cmd_name} cannot be loaded: {type(error).__name__}: {error}"
                warnings.warn(text, stacklevel=2)
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _imports_first(args))

    def invoke(self, ctx: Any) -> Any:
        try:
            load_plugins(ctx.params.get("imports") or ())
            return super().invoke(ctx)
        except BeaufortError as error:
            notes = "".join(f" [{note}]" for note in getattr(error, "__notes__", ()))
            _tell(f"{error}{notes}")
            raise typer.Exit(2) from None
        except EOFError as error:  # typer takes it for the end of what is typed, and leaves with 1
            raise RuntimeError("the end of a file was met too early") from error
        except KeyboardInterrupt:
            typer.echo(
                "\nbeaufort: interrupted; what is complete stays, and the same command makes the rest",
                err=True,
            )
            raise typer.Exit(130) from None


def _load_command(name: str) -> Any:
    """The command of an entry point: a function, or a `typer.Typer` with commands of its own."""
    found = offered(_COMMANDS)[name].load()
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(rich_markup_mode="markdown", add_completion=False)
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    name_types(command)
    return command


def _imports_first(args: list[str]) -> list[str]:
    """`--import` belongs to all commands, and people write it after theirs.

    >>> _imports_first(["run", "--seed", "1", "--import", "street"])
    ['--import', 'street', 'run', '--seed', '1']
    """
    first: list[str] = []
    rest: list[str] = []
    waiting = list(args)
    while waiting and waiting[0] != "--":
        one = waiting.pop(0)
        if one == "--import" and waiting:
            first += [one, waiting.pop(0)]
        else:
            (first if one.startswith("--import=") else rest).append(one)
    return [*first, *rest, *waiting]


def _tell(message: str) -> None:
    """Say what is wrong; an error may quote a file, a name or a service, so it is made harmless first."""
    with contextlib.suppress(OSError):
        typer.echo(f"beaufort: {printable(without_secrets(message), keep=chr(10))}", err=True)


def _forget_output() -> None:
    """Throw away what stdout could not take; Python would complain about it once more when it ends."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    name="beaufort",
    cls=_Group,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module that registers corruptions, data sets or suites; for every command.",
        ),
    ] = None,
) -> None:
    """How well image classifiers hold up when their input stops looking like their training data.

    `beaufort corrupt photos/ corrupted/ --corruption fog,snow --severity 1-5`

    Exit codes: 0 all is well; 1 some files had problems, told at the end, a check found something wrong, or a
    gate failed; 2 the command cannot be carried out as given; 3 a gate cannot decide; 130 interrupted.
    """


app.command()(corrupt.corrupt)
app.command()(make.make)
app.command()(gallery.gallery)
app.command()(run.run)
app.command()(compare.compare)
app.command()(gate.gate)
app.command()(frames.frames)
app.command()(power.power)
app.command()(validate.validate)
app.command()(check.check)
app.command()(report.report)
app.command()(store.query)
app.command()(ls.ls)
app.add_typer(new.app, name="new")
app.add_typer(data.app, name="data")
app.add_typer(store.app, name="store")


def main() -> None:
    """Run the command line."""
    _set_warnings()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that it has no code for must not end a command
            stream.reconfigure(errors="backslashreplace")
    app()


def _set_warnings() -> None:
    """Show our own as notes; leave out Pillow's about a huge picture, whose refusal says enough."""
    from PIL import Image

    from beaufort._core.errors import SizeWarning

    show = warnings.showwarning

    def note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, SizeWarning):
            typer.echo(f"note: {message}", err=True)
        else:
            show(message, category, *place, **more)

    warnings.showwarning = note
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)

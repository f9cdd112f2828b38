"""The command `beaufort`: which commands there are, how they are loaded, and how errors end."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from beaufort import __version__
from beaufort._core.errors import BeaufortError
from beaufort._core.plugins import load_plugins, offered
from beaufort._core.text import printable, without_secrets

_HELP = {
    "demo": "Evaluate a small classifier on a whole benchmark, print a table and write a report.",
    "corrupt": "Corrupt images into `OUTPUT/corruption/severity/…`, skipping files that exist.",
    "make": "Make a published dataset in its published layout, skipping files that exist.",
    "gallery": "Draw one image under every corruption and severity, as a PNG file and a self-contained page.",
    "check": "Check that a model is loaded correctly, and report likely mistakes.",
    "validate": "Validate suite files and report every mistake with its line.",
    "run": "Evaluate models under every condition of a suite, and store the predictions.",
    "report": "Report the results of a store as a page, a table or a file for other programs.",
    "compare": "Compare models on the same images: a ranking with ties, paired differences, and tests.",
    "gate": "Check a model against limits, for CI: passed, failed or undecided.",
    "power": "Compute how many images a gate needs to detect a drop.",
    "frames": "Report how often models are right on an anchor frame and on all frames around it (pm-k).",
    "board": "Write static pages that rank the models of many bundles, after verifying them.",
    "results": "Publish, verify, merge and query stored results.",
    "ls": "List corruptions, suites, datasets, models, image filters, adaptation methods, files, or grids.",
    "data": "Download and verify files of the catalog.",
    "new": "Create a template of a corruption or a study.",
    "place": "Place a model in a grid: effective robustness, rank among similar models, neighbors.",
    "testbed": "Measure effective and relative robustness in a grid of models and test sets.",
    "mine": "Make hard test images: categories in unusual places, textures and materials.",
    "review": "Let people judge in a browser whether images show what they should.",
    "train": "Train a network by a recipe; after an interruption, the same command resumes.",
    "leave-out": "Train without each value of a column in turn, and score on the held-out images.",
    "reproduce": (
        "Run a published study or your own: train, evaluate, and write tables, figures and a page."
    ),
}
"""Commands with their help, which is printed without importing them; a test compares it with theirs."""

_CORE = {
    "board": "board:board",
    "check": "check:check",
    "compare": "compare:compare",
    "corrupt": "corrupt:corrupt",
    "data": "data:app",
    "frames": "frames:frames",
    "gallery": "gallery:gallery",
    "gate": "gate:gate",
    "ls": "ls:ls",
    "make": "make:make",
    "new": "new:app",
    "power": "power:power",
    "report": "report:report",
    "results": "results:app",
    "run": "run:run",
    "validate": "validate:validate",
}
"""Module of this package and object of each command that is not an entry point."""

_ENTRY_POINTS = "beaufort.commands"
"""Entry-point group of commands; the applications use it as other packages do."""


class _Group(TyperGroup):
    """Loads commands when they are used, and turns errors into messages and exit codes."""

    _listing = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        _name_types(self)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  the signature of Click
        available = {*_CORE, *offered(_ENTRY_POINTS)}
        return [*(name for name in _HELP if name in available), *sorted(available - {*_HELP})]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self._listing and cmd_name in _HELP:
            return TyperCommand(cmd_name, help=_HELP[cmd_name])
        if cmd_name not in self.commands and cmd_name in {*_CORE, *offered(_ENTRY_POINTS)}:
            try:
                self.commands[cmd_name] = _load_command(cmd_name)
            except Exception as error:  # a package that cannot be imported must not disable other commands
                text = f"the command {cmd_name} cannot be loaded: {type(error).__name__}: {error}"
                warnings.warn(text, stacklevel=2)
        return super().get_command(ctx, cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with self._list_only():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        with self._list_only():
            return super().shell_complete(ctx, incomplete)

    @contextlib.contextmanager
    def _list_only(self) -> Iterator[None]:
        self._listing = True
        try:
            yield
        finally:
            self._listing = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _imports_first(args))

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            return super().main(*args, **options)
        except OSError as error:  # a full disk behind stdout, a directory without permission
            _print_error(f"operating system error: {error}")
            _discard_output()
            sys.exit(2)
        except Exception as error:  # Python's own exit code, 1, would mean that a gate failed
            typer.echo(printable(without_secrets(traceback.format_exc()), keep="\n").rstrip(), err=True)
            _print_error(
                f"the command crashed ({type(error).__name__}): the cause is either your own code, such as a "
                "model or a module of --import, or a bug in Beaufort"
            )
            sys.exit(2)

    def invoke(self, ctx: Any) -> Any:
        try:
            load_plugins(ctx.params.get("imports") or ())
            return super().invoke(ctx)
        except BeaufortError as error:
            notes = "".join(f" [{note}]" for note in getattr(error, "__notes__", ()))
            _print_error(f"{error}{notes}")
            raise typer.Exit(2) from None
        except EOFError as error:  # Typer treats it as the end of typed input, and exits with 1
            raise RuntimeError("unexpected end of file") from error
        except KeyboardInterrupt:
            typer.echo(
                "\nbeaufort: interrupted; finished work is kept, run the same command to continue", err=True
            )
            raise typer.Exit(130) from None


def _load_command(name: str) -> Any:
    """Return the command of a function, or of a `typer.Typer` with commands of its own."""
    if name in _CORE:
        module, _, attribute = _CORE[name].partition(":")
        target = getattr(import_module(f"beaufort.cli.{module}"), attribute)
    else:
        target = offered(_ENTRY_POINTS)[name].load()
    if not isinstance(target, typer.Typer):
        single = typer.Typer(rich_markup_mode="markdown", add_completion=False)
        single.command(name)(target)
        target = single
    command = typer.main.get_command(target)
    command.name = name
    _name_types(command)
    return command


def _imports_first(args: list[str]) -> list[str]:
    """Move `--import`, which belongs to all commands, before the command.

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


_TYPE_NAMES = {
    "bool": "",
    "float": "NUMBER",
    "float range": "NUMBER",
    "int": "INTEGER",
    "int range": "INTEGER",
    "path": "PATH",
    "str": "TEXT",
}


def _name_types(command: Any) -> None:
    """Let the help of a command, and of all below it, name types TEXT, PATH, INTEGER and NUMBER.

    Versions of Typer differ in what they print, up to `<list[str]>`.
    """
    known = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        params = list(known(ctx))
        for param in params:
            if hasattr(param, "display_type"):
                original = type(param).display_type
                param.display_type = lambda ctx, param=param, original=original: _type_name(
                    original(param, ctx)
                )
        return params

    command.get_params = get_params
    for below in getattr(command, "commands", {}).values():
        _name_types(below)


def _type_name(text: str) -> str:
    """Return the name of a type; choices stay as they are.

    >>> _type_name("<list[str]>"), _type_name("<png|jpeg>"), _type_name("<bool>")
    ('TEXT', 'png|jpeg', '')
    """
    plain = re.sub(r"^<|>$", "", text)
    plain = re.sub(r"^list\[(.*)\]$", r"\1", plain)
    return _TYPE_NAMES.get(plain.lower(), plain)


def _print_error(message: str) -> None:
    """Print a message, without control characters and secrets that it may quote."""
    with contextlib.suppress(OSError):
        typer.echo(f"beaufort: {printable(without_secrets(message), keep=chr(10))}", err=True)


def _discard_output() -> None:
    """Discard what stdout could not take; Python would report it once more at exit."""
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


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"beaufort {__version__}")
        raise typer.Exit


@app.callback()
def beaufort(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module that registers corruptions, datasets or suites; applies to every command.",
        ),
    ] = None,
) -> None:
    """Evaluate how robust image classifiers are.

    `beaufort corrupt photos/ corrupted/ --corruption fog,snow --severity 1-5`

    `beaufort run --model resnet50.onnx --suite imagenet-c --data imagenet/val --store results`

    Exit codes: 0 success; 1 some files failed (they are listed at the end), a check found a problem, or a
    gate failed; 2 an error; 3 a gate is undecided; 130 interrupted.
    """


def main() -> None:
    """Run the command line."""
    _set_warnings()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that cannot be encoded must not be an error
            stream.reconfigure(errors="backslashreplace")
    app()


def _set_warnings() -> None:
    """Print warnings about sizes as notes, and ignore Pillow's about huge images, which raise an error."""
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

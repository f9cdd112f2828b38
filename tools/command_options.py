"""The options of the command line, by name: their types, help texts and the commands that have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import typer

from beaufort.cli import app


class Use(NamedTuple):
    """An option of one command."""

    name: str
    command: str
    type: str
    help: str


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    command = typer.main.get_command(app) if command is None else command
    if not hasattr(command, "list_commands"):
        yield " ".join(path), command
        return
    context = typer.Context(command)
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), (*path, name))


def uses() -> list[Use]:
    """Every option of every command."""
    return [
        Use(max(option.opts, key=len), name, option.display_type(typer.Context(command)), option.help or "")
        for name, command in commands()
        for option in command.get_params(typer.Context(command))
        if option.param_type_name == "option" and "--help" not in option.opts
    ]

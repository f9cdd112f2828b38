"""Generate the command-line reference from the commands: an overview, and one page per group of commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import typer

from beaufort.cli import app

GROUPS = {
    "images": ("Corrupt images", ("corrupt", "make", "gallery", "new", "ls", "data")),
    "evaluation": ("Evaluate models", ("demo", "check", "validate", "run", "results", "board")),
    "results": ("Report results", ("report", "compare", "gate", "power", "frames")),
    "testbed": ("Testbed", ("place", "testbed")),
    "mining": ("Mine and review images", ("mine", "review")),
    "training": ("Train and reproduce", ("train", "leave-out", "reproduce")),
}
"""Commands on each page, by the name of its file."""

_OVERVIEW = """\
# Command line

`beaufort COMMAND --help` (or `-h`) prints what these pages contain. `beaufort --install-completion` installs
the completion of commands, options, suites and corruptions for bash, zsh, fish or PowerShell.

Long commands show a progress bar on a terminal and a line per minute in a log. Files appear under their final
names only when they are complete, so you can interrupt a command at any time and run it again to continue.

## Exit codes

| code | meaning |
|---:|---|
| 0 | success |
| 1 | some files failed (they are listed at the end), a check found a problem, or a gate failed |
| 2 | an error: invalid use, or a model or plug-in of yours that crashed, with its traceback |
| 3 | `gate` only: undecided; more images are needed |
| 130 | interrupted |

## Commands

"""


class Use(NamedTuple):
    """An option of one command."""

    name: str
    command: str
    type: str
    help: str


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every command that is not a group, with the words that call it."""
    command = typer.main.get_command(app) if command is None else command
    if not hasattr(command, "list_commands"):
        yield " ".join(path), command
        return
    context = typer.Context(command)
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), (*path, name))


def uses() -> list[Use]:
    """Return every option of every command."""
    return [
        Use(_long(option), name, _type(option, command), option.help or "")
        for name, command in commands()
        for option in _parameters(command, "option")
    ]


def pages() -> dict[str, str]:
    """Return the pages as Markdown, by the names of their files."""
    every = dict(commands())
    found = {"index.md": _OVERVIEW + "\n".join(_overview_lines(every)) + "\n"}
    for file, (title, names) in GROUPS.items():
        some = [(name, command) for name, command in every.items() if name.split()[0] in names]
        parts = [f"# {title}", *(part for name, command in some for part in _command(name, command))]
        found[f"{file}.md"] = "\n\n".join(parts) + "\n"
    return found


def _overview_lines(every: dict[str, Any]) -> Iterator[str]:
    yield from ("| command | description |", "|---|---|")
    for file, (_, names) in GROUPS.items():
        for name, command in every.items():
            if name.split()[0] in names:
                first = " ".join((command.help or "").partition("\n\n")[0].split())
                yield f"| [`{name}`]({file}.md#{name.replace(' ', '-')}) | {_cell(first)} |"
    yield from ("", "## Options", "", "An option has the same meaning in every command that has it.", "")
    yield from ("| option | meaning | commands |", "|---|---|---|")
    options: dict[tuple[str, str, str], list[str]] = {}
    for use in uses():
        options.setdefault((use.name, use.type, use.help), []).append(use.command)
    for (name, kind, text), users in sorted(options.items()):
        who = f"{len(users)} commands" if len(users) > 6 else ", ".join(users)
        yield f"| {_code(name, kind)} | {_cell(text)} | {who} |"


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"## `{name}` {{ #{name.replace(' ', '-')} }}"
    text = re.sub(r"^`(beaufort [^`]+)`$", r"```console\n$ \1\n```", command.help or "", flags=re.MULTILINE)
    yield text.replace("\n```\n\n```console\n", "\n")
    for kind, title in (("argument", "argument"), ("option", "option")):
        rows = []
        for one in _parameters(command, kind):
            label = one.metavar or one.name.upper() if kind == "argument" else _long(one)
            name_and_type = f"`{label}`" if kind == "argument" else _code(label, _type(one, command))
            short = "".join(f", `{opt}`" for opt in one.opts if kind == "option" and opt != label)
            note = "; required" if one.required and kind == "option" else ""
            if one.show_default and one.default not in (None, False, (), []):
                note = f"; default: `{one.default}`"
            rows.append(f"| {name_and_type}{short} | {_cell((one.help or '').rstrip('.') + note + '.')} |")
        if rows:
            yield "\n".join([f"| {title} | description |", "|---|---|", *rows])


def _parameters(command: Any, kind: str) -> list[Any]:
    found = command.get_params(typer.Context(command))
    return [one for one in found if one.param_type_name == kind and "--help" not in one.opts]


def _long(option: Any) -> str:
    return str(max(option.opts, key=len))


def _type(option: Any, command: Any) -> str:
    return option.metavar or str(option.display_type(typer.Context(command)))


def _code(name: str, kind: str) -> str:
    return f"`{name} {kind}`" if kind else f"`{name}`"


def _cell(text: str) -> str:
    """Escape what would end a cell, outside of code."""
    parts = " ".join(text.split()).split("`")
    return "`".join(p.replace("|", "\\|") if at % 2 == 0 else p for at, p in enumerate(parts))

"""Types in help as people read them: TEXT, PATH, INTEGER, NUMBER, and nothing for a switch."""

from __future__ import annotations

import re
from typing import Any

_NAMES = {
    "bool": "",
    "float": "NUMBER",
    "float range": "NUMBER",
    "int": "INTEGER",
    "int range": "INTEGER",
    "path": "PATH",
    "str": "TEXT",
}


def name_types(command: Any) -> None:
    """Let a command, and all below it, show types by these names.

    Versions of Typer differ in what they show, up to `<list[str]>`.
    """
    known = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        params = list(known(ctx))
        for param in params:
            if hasattr(param, "display_type"):
                shown = type(param).display_type
                param.display_type = lambda ctx, param=param, shown=shown: _named(shown(param, ctx))
        return params

    command.get_params = get_params
    for below in getattr(command, "commands", {}).values():
        name_types(below)


def _named(shown: str) -> str:
    """A type as people call it; choices stay as they are.

    >>> _named("<list[str]>"), _named("<png|jpeg>"), _named("<bool>")
    ('TEXT', 'png|jpeg', '')
    """
    plain = re.sub(r"^<|>$", "", shown)
    plain = re.sub(r"^list\[(.*)\]$", r"\1", plain)
    return _NAMES.get(plain.lower(), plain)

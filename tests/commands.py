"""The command line, in this process, and the facts in what it prints."""

from __future__ import annotations

import re

from typer.testing import CliRunner

from beaufort.cli._app import app


def invoke(*arguments: str, code: int = 0) -> str:
    """Return the output of a command, which must exit with a code."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def shows(text: str, *facts: str) -> bool:
    """Whether one line of a text contains all facts, in this order."""
    return re.search(".*".join(map(re.escape, facts)), text) is not None

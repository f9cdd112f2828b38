"""The command line, in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from beaufort.cli._app import app


def invoke(*arguments: str, code: int = 0) -> str:
    """Return the output of a command, which must exit with a code."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output

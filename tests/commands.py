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
    """Whether a line of a text has all facts as whole words, in this order and near each other."""
    edges = [(r"\b" * fact[0].isalnum(), r"\b" * fact[-1].isalnum()) for fact in facts]
    words = (start + re.escape(fact) + end for fact, (start, end) in zip(facts, edges, strict=True))
    return re.search(".{0,100}?".join(words), text) is not None

"""The command line: one file per command."""

from __future__ import annotations

from beaufort.cli._app import app, main

__all__ = ["app", "main"]

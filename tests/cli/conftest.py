"""Fixtures of the command-line tests."""

from __future__ import annotations

import pytest

from beaufort.cli import _console


@pytest.fixture(autouse=True)
def _still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print no progress line per minute, unless a test sets its own clock."""
    monkeypatch.setattr(_console, "clock", lambda: 0.0)

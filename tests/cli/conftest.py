"""Fixtures of the command-line tests."""

from __future__ import annotations

import pytest

from beaufort.cli import _console


@pytest.fixture(autouse=True)
def _still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line a minute on stderr, however slow the machine is, unless a test has a clock of its own."""
    monkeypatch.setattr(_console, "clock", lambda: 0.0)

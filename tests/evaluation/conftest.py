"""Fixtures of the evaluation tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_model_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the checks before a run, for tests that count the images that a model predicts."""
    monkeypatch.setattr("beaufort.results.run.check_models", lambda planned, **_: planned)

"""Each test has its own cache of digests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BEAUFORT_OFFLINE", raising=False)

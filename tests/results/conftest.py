"""Gates whose true drop is known."""

from __future__ import annotations

from types import ModuleType

import pytest

import benchmarks.gate


@pytest.fixture(scope="session")
def simulation() -> ModuleType:
    """Return the benchmark behind the tables in the documentation."""
    return benchmarks.gate

"""Gates whose true answer is known."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def simulation() -> ModuleType:
    """The benchmark behind the tables in the documentation."""
    spec = importlib.util.spec_from_file_location("benchmark_gate", ROOT / "benchmarks" / "gate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module

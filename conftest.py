"""Settings for all tests: threads, garbage collection, order, names of parameters, and ignored files."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests run in several processes, where threads of BLAS and torch would wait busily for one another: a matrix
# product takes three times the CPU time. The libraries read the variable when they are imported.
os.environ["OMP_NUM_THREADS"] = "1"

SOURCE = Path(__file__).parent / "src"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Import only those modules of the package for their doctests that have any."""
    source = collection_path.suffix == ".py" and collection_path.is_relative_to(SOURCE)
    return True if source and ">>> " not in collection_path.read_text(encoding="utf-8") else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Turn garbage collection off while modules and tests are loaded: their objects all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle the files, and the tests in each file, if BEAUFORT_TEST_ORDER is set to a seed."""
    if seed := os.environ.get("BEAUFORT_TEST_ORDER"):
        rng = random.Random(int(seed))
        files = sorted({item.path for item in items})
        rng.shuffle(files)
        place = {path: number for number, path in enumerate(files)}
        rng.shuffle(items)
        items.sort(key=lambda item: place[item.path])


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name long file contents by their size, because names are sent between processes with every result."""
    if isinstance(val, str | bytes) and len(val) > 200:
        return f"{type(val).__name__} of {len(val)}"
    return None

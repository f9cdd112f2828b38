"""What holds before pytest looks for tests: threads, the collector of garbage, and what is left out."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

# Tests run in several processes side by side. Threads of BLAS and of torch in each of them would wait for one
# another, busily: a product of matrices took three times the processor time that it takes with one thread.
# The libraries read it when they are imported.
os.environ["OMP_NUM_THREADS"] = "1"

collect_ignore_glob = [] if find_spec("triton") else ["src/beaufort/*/_*_kernels.py"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among modules and tests: all of them stay, and there are millions of objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Long contents of files are named by their size: names are sent between processes with every result."""
    if isinstance(val, str | bytes) and len(val) > 200:
        return f"{type(val).__name__} of {len(val)}"
    return None

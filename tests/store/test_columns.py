"""Columns from NumPy arrays and back, as in PyArrow, but without pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from beaufort.store.columns import column_of, numbers_of, text_column
from tests.conftest import Fill

DTYPES = (np.int32, np.int64, np.float16, np.float32, np.float64, np.bool_)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 21])
def test_as_pyarrow_does_it(dtype: Any, count: int) -> None:
    values = (np.arange(count) % 3).astype(dtype)
    column: Any = pa.array(values)
    assert column_of(values).equals(column)
    assert column_of(np.repeat(values, 2)[::2]).equals(column)
    chunks = pa.chunked_array([column[:4], column[4:]], column.type)
    later = pa.concat_arrays([column, column])[count:]
    for found in map(numbers_of, (column, chunks, later)):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(numbers_of(column[3:20]), values[3:20])


def test_text_and_nulls() -> None:
    texts = ["digit/1", "", "né", "日本"]
    assert text_column(texts).equals(pa.array(texts, pa.string()))
    assert text_column([]).equals(pa.array([], pa.string()))
    np.testing.assert_array_equal(numbers_of(pa.array([1.0, None])), [1.0, np.nan])


SCRIPT = """
import sys
import numpy as np
from beaufort.cli import app
from beaufort.data import from_arrays
from beaufort.results import evaluate
from beaufort.models import as_model
from beaufort.suites import Suite
images = np.arange(4 * 32 * 32 * 3).astype(np.uint8).reshape(4, 32, 32, 3)
model = as_model(lambda batch: batch[:, 0, :3, 0].astype("f4"), name="first", classes=3, version="1")
some = {"scale": "cifar", "corruptions": ("contrast",), "severities": (1,)}
suite = Suite(name="small", version=1, dataset="toys", **some)
assert evaluate([model], suite, from_arrays("toys", images, [0, 1, 2, 0]), "memory://predictions").results
for command in (
    "report {0} -o {0}.html",
    "compare good bad --store {0}",
    "gate --store {0} --require clean=0",
):
    app(command.format("made").split(), standalone_mode=False)
assert "pandas" not in sys.modules
"""


@pytest.mark.slow
def test_commands_leave_pandas_alone(fill: Fill, tmp_path: Path) -> None:
    """It may be installed for something else, and its import takes longer than some commands."""
    pytest.importorskip("pandas", reason="pandas is not installed")
    fill("made", {"good": 0.9, "bad": 0.5})
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

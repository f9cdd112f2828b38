"""Grids for the tests of the testbed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beaufort.testbed import Grid, load_grid


@pytest.fixture(scope="session")
def paper() -> Grid:
    return load_grid("paper")


@pytest.fixture(scope="session")
def timm() -> Grid:
    return load_grid("timm")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A CSV file of ten models on a line in logit axes, slope 0.9 and intercept −0.4, and two off it."""
    x = np.linspace(50, 86, 10)
    z = 0.9 * np.log(x / (100 - x)) - 0.4
    y = 100 / (1 + np.exp(-z))
    lines = ["model,type,clean,shifted"]
    lines += [f"m{i},STANDARD,{a:.6f},{b:.6f}" for i, (a, b) in enumerate(zip(x, y, strict=True))]
    lines += [f"above,ROBUST_INTV,{x[4]:.6f},{y[4] + 5:.6f}", f"below,ROBUST_INTV,{x[6]:.6f},{y[6] - 3:.6f}"]
    path = tmp_path / "small.csv"
    path.write_text("\n".join(lines) + "\n")
    return path

"""Grids united with files and stores, and grids as tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.cli._app import app
from beaufort.store import FileStore
from beaufort.testbed import Grid, correlate, effective_robustness, fit_shift, load_grid, place
from beaufort.testbed.export import write_cells, write_grid

SCORES = """\
model,type,setting,accuracy,n,convention,preprocessing,fingerprint,date
mine,ROBUST_INTV,val,80.1,50000,all,own,ab12,2024-05-01
mine,ROBUST_INTV,imagenetv2,72.0,10000,all,resize 256,cd34,2024-05-01
plain,STANDARD,val,75.0,,,,,
plain,STANDARD,imagenetv2,63.0,,,,,
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(SCORES)
    return path


@pytest.fixture
def union(mine: Path) -> Grid:
    return load_grid(f"paper+{mine}")


def test_a_union_has_the_models_of_all_and_the_trend_of_the_first(union: Grid, paper: Grid) -> None:
    assert (union.name, union.added, len(union.models)) == ("paper+mine", ("mine", "plain"), 206)
    assert union.fit_rule == paper.fit_rule
    assert union.fitted.sum() == 78
    before, now = fit_shift(paper, "imagenetv2"), fit_shift(union, "imagenetv2")
    assert (before.predict(70.0), before.n) == (now.predict(70.0), now.n)
    for name in paper.settings:
        assert np.array_equal(union.column(name)[:204], paper.column(name), equal_nan=True)
        assert np.array_equal(union.images(name)[:204], paper.images(name), equal_nan=True)
    assert union.select(["mine|plain"]).sum() == 2
    assert union.select(["paper"]).sum() == 204
    assert union.groups["not-standard"][union.row_of["mine"]]
    assert not union.groups["not-standard"][union.row_of["plain"]]


def test_each_accuracy_keeps_its_provenance(union: Grid, paper: Grid) -> None:
    scores = {one.setting: one for one in union.scores("mine")}
    v2 = scores["imagenetv2-matched-frequency-format-val"]  # the short name is the column's
    assert (v2.accuracy, v2.images, v2.preprocessing, v2.fingerprint) == (72.0, 10_000, "resize 256", "cd34")
    assert (v2.date, v2.source, v2.convention) == ("2024-05-01", "mine", "all")
    published = union.scores("resnet50")
    assert published == paper.scores("resnet50")
    assert {(one.source, one.date) for one in published} == {("paper", "31 August 2020, commit 28477dc")}
    assert "the scores state 'resize 256'" in union.facts["caveat"]
    with pytest.raises(UnknownNameError, match="resnet-50"):
        union.scores("resnet-50")


def test_a_model_without_a_number_of_images_has_no_verdict(union: Grid) -> None:
    known, unknown = effective_robustness(union, "imagenetv2", select=["mine|plain"]).models
    assert known.interval is not None
    assert (known.verdict, known.images) == ("above", (50_000, 10_000))
    assert (unknown.interval, unknown.verdict, unknown.images) == (None, "unknown", (None, None))


def test_a_model_of_the_grid_is_placed_without_itself(union: Grid) -> None:
    (one,) = place(union.scores("mine"), union, model="mine").standings
    assert one.verdict == "above"
    assert "mine" not in [near.model for near in one.neighbors]
    before = place(union.scores("mine"), "paper").standings[0]
    assert one.robustness == before.robustness


def test_correlations_count_added_models(mine: Path, paper: Grid) -> None:
    rows = [f"extra,{name},{50 + i},1000" for i, name in enumerate(["val", "imagenetv2", "pgd.l2.eps0.1"])]
    mine.write_text("\n".join(["model,setting,accuracy,n", *rows]))
    union = load_grid(f"paper+{mine}")
    assert correlate(union, "pgd.l2.eps0.1", "imagenetv2").n == (
        correlate(paper, "pgd.l2.eps0.1", "imagenetv2").n + 1
    )


def test_the_first_grid_with_an_accuracy_provides_it(mine: Path, paper: Grid) -> None:
    mine.write_text("model,setting,accuracy\nresnet50,val,99\nresnet50,novel,12\n")
    union = load_grid(f"paper+{mine}")
    row = union.row_of["resnet50"]
    assert union.column("val")[row] == paper.column("val")[paper.row_of["resnet50"]]
    assert union.column("novel")[row] == 12
    assert "1 accuracy of mine" in union.facts["caveat"]
    assert {one.source for one in union.scores("resnet50")} == {"paper", "mine"}


def test_a_column_may_be_a_mean_of_the_first_grid(mine: Path, paper: Grid) -> None:
    mine.write_text("model,avg_pgd,val\nmine,30,76\n")
    union = load_grid(f"paper+{mine}")
    assert np.array_equal(union.column("avg_pgd")[:204], paper.column("avg_pgd"), equal_nan=True)
    assert np.array_equal(union.images("avg_pgd")[:204], paper.images("avg_pgd"), equal_nan=True)
    (one,) = effective_robustness(union, "avg_pgd", select=["mine"]).models
    assert (one.shifted, one.verdict) == (30, "unknown")


def test_files_that_cannot_be_united(mine: Path) -> None:
    with pytest.raises(OptionError, match="grid not found"):
        load_grid("paper+nowhere.csv")
    with pytest.raises(UnknownNameError, match="unknown grid 'papr'"):
        load_grid(f"papr+{mine}")
    with pytest.raises(OptionError, match="names of united grids"):
        load_grid("paper+paper")
    mine.write_text("model,setting,accuracy\na,val,1\na,val,2\n")
    with pytest.raises(OptionError, match=r"'a'.*'val'"):
        load_grid(mine)
    mine.write_text("model,setting,accuracy\na,imagenetv2,1\na,imagenetv2-matched-frequency-format-val,2\n")
    with pytest.raises(OptionError, match=r"two columns.* setting"):
        load_grid(f"paper+{mine}")


@pytest.mark.parametrize("source", ["paper", "timm", "robustbench-imagenet", "union"])
def test_tables_give_the_grid_back(source: str, union: Grid, tmp_path: Path) -> None:
    grid = union if source == "union" else load_grid(source)
    write_grid(grid, tmp_path / "wide.csv")
    write_cells(grid, tmp_path / "cells.csv")
    for name in ("wide", "cells"):
        back = load_grid(tmp_path / f"{name}.csv")
        assert (back.models, back.types) == (grid.models, grid.types)
        assert np.array_equal(back.fitted, grid.fitted)
        for setting in grid.settings:
            assert np.array_equal(back.column(setting), grid.column(setting), equal_nan=True)
            if name == "cells":
                assert np.array_equal(back.images(setting), grid.images(setting), equal_nan=True)
    model = grid.models[-1]
    assert sorted(back.scores(model), key=str) == sorted(grid.scores(model), key=str)


def test_a_store_is_united_under_the_names_of_the_testbed(
    fill: Callable[..., FileStore], paper: Grid, tmp_path: Path
) -> None:
    store = str(fill("s", {"a": 0.9, "b": 0.8}).location).removeprefix("file://")
    grid = load_grid(f"paper+{store}")
    assert grid.added == ("a", "b")
    scores = {one.setting: one for one in grid.scores("a")}
    assert scores["val"].fingerprint
    assert scores["val"].accuracy == pytest.approx(float(grid.column("val")[grid.row_of["a"]]))
    ran = CliRunner().invoke(app, ["place", "--grid", f"paper+{store}", "--model", "a", "--json"])
    alone = CliRunner().invoke(app, ["place", "--store", store, "--model", "a", "--json"])
    one, other = (json.loads(found.stdout)["shifts"] for found in (ran, alone))
    assert [(shift["y"], shift["rho"]) for shift in one] == [(shift["y"], shift["rho"]) for shift in other]
    table = tmp_path / "grid.csv"
    args = ["testbed", "export", "--grid", f"paper+{store}", "--format", "cells", "-o", str(table)]
    assert CliRunner().invoke(app, args).exit_code == 0
    assert sorted(load_grid(table).scores("a"), key=str) == sorted(grid.scores("a"), key=str)

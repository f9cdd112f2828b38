"""Where grids come from, and errors for invalid ones."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from beaufort import evaluate
from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.models import Model, as_model
from beaufort.store import FileStore
from beaufort.suites import parse_suite
from beaufort.testbed import GRIDS, Grid, fit_shift, load_grid
from beaufort.testbed.correlation import natural_shifts
from beaufort.testbed.grid_files import read_table
from beaufort.testbed.load import read_pairs
from beaufort.testbed.timm_tables import KINDS, training_data

ROOT = Path(__file__).resolve().parents[2]
FILES = ("grid-latest", "grid-paper", "grid-robustbench", "grid-timm", "models", "pairs", "settings")


def test_the_figures_are_small_and_name_their_source() -> None:
    folder = files("beaufort.testbed") / "data"
    sizes = {one.name: len(one.read_bytes()) for one in folder.iterdir() if one.name.endswith(".parquet")}
    assert set(sizes) == {f"{name}.parquet" for name in FILES}
    assert sum(sizes.values()) < 1_000_000
    for name in FILES:
        assert {"source", "date", "license", "made by"} <= set(read_table(name).facts), name
    assert "5,000 images" in read_table("grid-robustbench").facts["caveat"]


def test_the_tool_makes_these_files(shared: Path, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("pack_testbed", ROOT / "tools" / "pack_testbed.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    if not (shared / "data" / "imagenet_testbed").is_dir():
        pytest.skip("no testbed data here")
    tool.pack(shared / "data", tmp_path)
    import pyarrow.parquet as pq

    for name in FILES:
        made = pq.read_table(tmp_path / f"{name}.parquet")
        with (files("beaufort.testbed") / "data" / f"{name}.parquet").open("rb") as file:
            assert made.equals(pq.read_table(file)), name


@pytest.mark.parametrize(
    ("name", "models", "settings", "fitted"),
    [
        ("paper", 204, 213, 78),
        ("latest", 338, 213, 78),
        ("timm", 1556, 8, 870),
        ("robustbench-cifar10", 23, 2, 23),
        ("robustbench-cifar100", 13, 2, 13),
        ("robustbench-imagenet", 12, 3, 12),
    ],
)
def test_grids_by_name(name: str, models: int, settings: int, fitted: int) -> None:
    grid = load_grid(name)
    assert (len(grid.models), len(grid.settings), int(grid.fitted.sum())) == (models, settings, fitted)
    assert name in GRIDS
    assert set(grid.values) == set(grid.settings)


def test_leaderboards_have_48_entries() -> None:
    assert sum(len(load_grid(name).models) for name in GRIDS if name.startswith("robustbench")) == 48


def test_timm_as_the_paper_where_both_have_a_model(paper: Grid, timm: Grid) -> None:
    pairs = {"resnet152.tv_in1k@224": "resnet152", "vgg16.tv_in1k@224": "vgg16"}
    for setting in ("val", "imagenet-a", "imagenet-r", "imagenet-sketch", "imagenetv2-matched-frequency"):
        for one, other in pairs.items():
            mine = timm.column(setting)[timm.row_of[one]]
            assert mine == pytest.approx(paper.column(setting)[paper.row_of[other]], abs=0.25), setting


def test_timm_has_the_knee_although_its_filter_model_has_no_value(timm: Grid) -> None:
    from beaufort.testbed import Knee

    knee = fit_shift(timm, "imagenet-a")
    assert isinstance(knee, Knee)
    assert knee.pivot == pytest.approx(91.89)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("resnet50.a1_in1k@288", "imagenet-1k"),
        ("resnet18.fb_swsl_ig1b_ft_in1k@224", "web"),
        ("resnet50.fb_ssl_yfcc100m_ft_in1k@224", "web"),
        ("tf_efficientnet_l2.ns_jft_in1k@800", "web"),
        ("tf_efficientnet_b0.ap_in1k@224", "imagenet-1k, adversarial"),
        ("inception_v3.tf_adv_in1k@299", "imagenet-1k, adversarial"),
        ("cait_s24_224.fb_dist_in1k@224", "imagenet-1k, distilled"),
        ("deit_base_distilled_patch16_224.fb_in1k@224", "imagenet-1k, distilled"),
        ("swin_base_patch4_window7_224.ms_in22k_ft_in1k@224", "imagenet-21k"),
        ("vit_base_patch16_clip_224.openai_ft_in12k_in1k@224", "image-text"),
        ("vit_so400m_patch14_siglip_378.webli_ft_in1k@378", "image-text"),
        ("convnextv2_base.fcmae_ft_in1k@224", "imagenet-1k"),
    ],
)
def test_training_data_by_name(timm: Grid, name: str, kind: str) -> None:
    assert training_data(name) == kind
    assert timm.groups[kind][timm.row_of[name]]


def test_every_entry_has_one_kind(timm: Grid) -> None:
    assert (np.sum([timm.groups[kind] for kind in KINDS], axis=0) == 1).all()


def test_the_papers_csv_by_path(shared: Path, paper: Grid) -> None:
    path = shared / "data" / "imagenet_testbed" / "grid_paper_204x213.csv"
    if not path.is_file():
        pytest.skip("no testbed data here")
    grid = load_grid(path)
    assert grid.fit_rule == "the testbed's 78 standard models"
    for name, column in grid.values.items():
        assert paper.values[name] == pytest.approx(column, abs=1e-5, nan_ok=True)
    from beaufort.testbed import correlate

    assert f"{correlate(grid, 'avg_pgd', 'imagenetv2', select=['v1']).pearson:.2f}" == "-0.05"


def test_timms_tables_by_folder(shared: Path, timm: Grid) -> None:
    folder = shared / "data" / "timm_results"
    if not folder.is_dir():
        pytest.skip("no timm results here")
    grid = load_grid(folder)
    assert grid.models == timm.models
    assert grid.column("imagenet-r") == pytest.approx(timm.column("imagenet-r"))


def test_a_store_is_a_grid(fill: Callable[..., FileStore]) -> None:
    names = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}
    grid = load_grid(str(fill("s", names).location).removeprefix("file://"))
    assert grid.models == tuple(names)
    assert "clean" in grid.settings
    shift = next(name for name in grid.settings if name != "clean")
    assert grid.settings[shift].clean == "clean"
    assert fit_shift(grid, shift).n == 4
    assert "all models" in grid.fit_rule


def test_a_store_at_a_url_is_a_grid(fill: Callable[..., FileStore]) -> None:
    folder = str(fill("s", {"a": 0.9, "b": 0.8, "c": 0.7}).location).removeprefix("file://")
    grid = load_grid(f"file://{folder}")
    assert (grid.name, grid.models) == ("s", ("a", "b", "c"))


def test_a_store_of_several_datasets_is_a_grid(tmp_path: Path) -> None:
    """Each dataset is a setting with a counterpart; a model that lacks one has a gap there."""
    suite = "{name: drawn, version: 1, parts: [{dataset: photos}, {dataset: drawn, counterpart: photos}]}"
    data = {
        name: (np.arange(count, dtype=np.uint8).repeat(768).reshape(count, 16, 16, 3), np.arange(count) % 2)
        for name, count in (("photos", 20), ("drawn", 10))
    }

    def model(name: str, wrong: int) -> Model:
        return as_model(
            lambda images: np.eye(2, dtype=np.float32)[
                (images[:, 0, 0, 0] + (images[:, 0, 0, 0] < wrong)).astype(int) % 2
            ],
            name=name,
            classes=2,
            version=name,
        )

    evaluate([model(f"m{wrong}", wrong) for wrong in (1, 3, 4, 6)], parse_suite(suite), data, tmp_path / "s")
    grid = load_grid(tmp_path / "s")
    assert grid.column("photos").tolist() == [95, 85, 80, 70]
    assert grid.column("drawn").tolist() == [90, 70, 60, 40]
    assert [grid.settings[name].images for name in ("photos", "drawn")] == [20, 10]
    assert natural_shifts(grid) == ["drawn"]
    assert fit_shift(grid, "drawn").n == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no column 'model'"),
        ("name,val\na,1\n", "no column 'model'; its columns are name, val"),
        ("model,val\n", "has no rows"),
        ("model,val\na,eighty\n", "'val' of 'a' in .* must be a number or empty, got 'eighty'"),
        ("model,val\na,inf\n", "must be a number or empty, got 'inf'"),
        ("model,val\na,101\n", "percentages from 0 to 100, got 101 for 'a' on 'val'"),
        ("model,val\na,-1\n", "percentages from 0 to 100, got -1"),
        ("model,val\na,1\na,2\n", "'a' more than once"),
        ("model,val,val\na,1,2\n", "'val' more than once"),
        ("model,val\na,1,2\n", "line 2.* 2 values, got 3"),
        ("model,val,x\na,1\n", "line 2.* 3 values, got 2"),
        ("model,val\n,1\na,2\n", "without a name in the column 'model'"),
        (f"model,val\n{'a' * 200_000},1\n", "as a CSV file.*field larger"),
        ("model,val,used_for_fit\na,1,1\nb,2,true\n", r"used_for_fit of 'b' .*0 or 1.* 'true'"),
    ],
)
def test_files_that_are_no_grids(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "grid.csv"
    path.write_text(text)
    with pytest.raises(OptionError, match=says):
        load_grid(path)


def test_missing_values_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text("\ufeffmodel,val,imagenet-sketch\na,60,\nb,nan,20\nc, 70 ,21\n", encoding="utf-8")
    grid = load_grid(path)
    assert np.isnan(grid.column("val")).tolist() == [False, True, False]
    assert grid.settings["imagenet-sketch"].clean == "val"
    assert "all models" in grid.fit_rule


def test_which_models_are_fitted_on(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text("model,used_for_fit,val,sketch\na,1,60,1\nb,0,70,2\nresnet50,1,80,3\n")
    assert load_grid(path).fitted.tolist() == [True, False, True]
    assert load_grid(path, fit_on=["all"]).fitted.all()
    assert load_grid(path, fit_on=["b"]).fitted.tolist() == [False, True, False]


def test_spreadsheets_write_1_as_a_fraction_and_0_as_nothing(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text("model,used_for_fit,val\na,1.0,60\nb,,70\nc,0.0,80\n")
    assert load_grid(path).fitted.tolist() == [True, False, False]


def test_any_name_is_one_row(tmp_path: Path) -> None:
    """Only what CSV calls the end of a line ends a row; a name with a bar can be chosen."""
    path = tmp_path / "grid.csv"
    path.write_text('model,val\nmö\u2028d\x85el,60\n"a\nb",61\nx|y,62\n', encoding="utf-8")
    grid = load_grid(path)
    assert grid.models == ("mö\u2028d\x85el", "a\nb", "x|y")
    assert grid.select(["x|y"]).tolist() == [False, False, True]


def test_fractions_given_as_percentages_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_text("model,val,sketch\na,0.6,0.2\nb,0.7,\nc,1,0.3\n")
    assert "percentages" in load_grid(path).facts["caveat"]
    path.write_text("model,val,sketch\na,0,\nb,0,0\n")
    assert "caveat" not in load_grid(path).facts


@pytest.mark.parametrize("source", ["papers", "nowhere/at/all"])
def test_no_such_grid(source: str) -> None:
    with pytest.raises(UnknownNameError, match="unknown grid"):
        load_grid(source)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="grid not found"):
        load_grid(tmp_path / "none.csv")


def test_selections(paper: Grid, timm: Grid) -> None:
    assert int(paper.select(["LP_ADV"]).sum()) == 16
    assert int(paper.select(["LP_ADV", "resnet50*"]).sum()) == 13
    assert int(paper.select(["resnet50 | resnet18"]).sum()) == 2
    assert int(paper.select(["v1"]).sum()) == 196
    assert int(paper.select([]).sum()) == 204
    assert int(timm.select(["resnet50.a1_in1k"]).sum()) == 2  # at two sizes
    assert int(timm.select(["resnet50.a1_in1k@288"]).sum()) == 1
    with pytest.raises(UnknownNameError, match="did you mean 'resnet50'"):
        paper.select(["resnet5O"])
    with pytest.raises(UnknownNameError, match="beaufort ls grids"):
        paper.select(["qqqqqq"])
    for nothing in ("", "resnet50 |", " | resnet50"):
        with pytest.raises(OptionError, match="must not be empty"):
            paper.select([nothing])


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_reading_the_figures_starts_no_thread() -> None:
    """A thread of Arrow's that is still starting when the process ends aborts it."""
    script = (
        "import os, pyarrow.parquet\n"
        "from beaufort.testbed.grid_files import read_table\n"
        "count = lambda: len(os.listdir('/proc/self/task'))\n"
        "before = count(); read_table('settings'); print(count() - before)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "0\n"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("a,b\na,b", "'a' with 'b' 2 times"),
        ("a,a", "'a' is its own base model"),
    ],
)
def test_pairs_that_would_distort_a_mean(tmp_path: Path, row: str, says: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f"model,base_model\n{row}\n")
    with pytest.raises(OptionError, match=says):
        read_pairs(path)

"""The study of architectures gives the published figures, and its line is that of least squares."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort.cli._app import app
from beaufort.testbed import load_grid
from beaufort.testbed.architectures import (
    FAMILIES,
    PRINTED,
    architectures_csv,
    study_architectures,
    write_architectures,
)
from beaufort.testbed.imagenet_c_tables import NETWORKS, imagenet_c_tables


def test_numbers_are_those_that_are_known() -> None:
    study = study_architectures()
    assert (round(study.slope, 3), round(study.offset, 1), round(study.r2, 2)) == (1.785, 30.2, 0.86)
    assert len(study.networks) == sum(map(len, FAMILIES.values())) == 35
    found = {one.name: one for one in study.networks}
    for name, clean, mce, relative, noise, residual in (
        ("alexnet", 43.48, 100.0, 100.0, 100.0, -7.8),
        ("resnet50", 23.87, 76.5, 102.6, 78.4, 3.7),
        ("densenet161", 22.86, 67.4, 85.1, 65.8, -3.7),
        ("mobilenet_v2", 28.12, 85.6, 111.0, 87.3, 5.2),
    ):
        one = found[name]
        got = (one.clean_error, one.mce, one.relative_mce, one.noise_ce, one.residual)
        np.testing.assert_allclose(got, (clean, mce, relative, noise, residual), atol=0.06)
        assert one.residual_interval.low < one.residual < one.residual_interval.high


def test_the_whole_table_agrees_with_the_reference(shared: Path) -> None:
    table = shared / "reference" / "tables" / "enh_testbed_architectures.csv"
    if not table.is_file():
        pytest.skip("the table of architectures is not there")
    with table.open(newline="") as file:
        known = {row["network"]: row for row in csv.DictReader(file)}
    study = study_architectures()
    assert {one.name for one in study.networks} == set(known)
    for one in study.networks:
        row = known[one.name]
        assert one.family == row["family"]
        for value, column in (
            (one.clean_error, "clean_error"),
            (one.mce, "mce"),
            (one.relative_mce, "relative_mce"),
            (one.noise_ce, "noise_ce_mean3"),
            (one.residual, "residual_from_78_model_line"),
        ):
            assert value == pytest.approx(float(row[column]), abs=0.06), (one.name, column)


def test_the_line_is_that_of_least_squares() -> None:
    study, grid = study_architectures(), load_grid("paper")
    rows = list(csv.DictReader(io.StringIO(architectures_csv(study))))
    assert {row["network"] for row in rows if row["printed_mce"]} == set(PRINTED)
    residuals = np.array([one.mce - study.slope * one.clean_error - study.offset for one in study.networks])
    np.testing.assert_allclose([one.residual for one in study.networks], residuals)
    assert study.fitted == int(grid.fitted.sum()) == 78


def test_files_and_command(tmp_path: Path) -> None:
    names = [path.name for path in write_architectures(study_architectures(), tmp_path / "a")]
    tables = ["imagenet-c-tables.md", "imagenet-c-tables.csv"]
    assert names == [*tables, "architectures.csv", "architectures.svg"]
    drawn = (tmp_path / "a" / "architectures.svg").read_text(encoding="utf-8")
    assert all(f">{name}</text>" in drawn for names in FAMILIES.values() for name in names)
    made = CliRunner().invoke(app, ["reproduce", "architectures", "-o", str(tmp_path / "b")])
    assert made.exit_code == 0
    assert "resnet50" in made.output
    assert "+3.7 [" in made.output
    assert (tmp_path / "b" / "architectures.csv").read_bytes() == (
        tmp_path / "a" / "architectures.csv"
    ).read_bytes()


def test_tables_of_the_paper_are_those_of_the_testbed() -> None:
    cells = {(one.table, one.network, one.column): one for one in imagenet_c_tables()}
    for network, mce in (
        *(("SqueezeNet", 101.7), ("VGG-11", 92.3), ("VGG-19", 88.1), ("VGG-19+BN", 81.8)),
        *(("ResNet-18", 84.5), ("ResNet-50", 76.5), ("AlexNet", 100.0)),
    ):
        assert cells["mce", network, "mce"].value == pytest.approx(mce, abs=0.06)
    assert len(cells) == 2 * 7 * (2 + 15)
    assert cells["mce", "VGG-19", "mce"].printed == pytest.approx(88.9)
    networks = {one.name: one for one in study_architectures().networks}
    for name, known in NETWORKS.items():
        assert cells["relative_mce", name, "relative_mce"].value == pytest.approx(
            networks[known].relative_mce
        )


def test_tables_of_the_paper_have_ones_own_networks_below(tmp_path: Path) -> None:
    scores = Path(__file__).parents[2] / "results" / "imagenet-c" / "scores.csv"
    words = ["reproduce", "architectures", "-o", str(tmp_path), "--data", f"scores={scores}"]
    made = CliRunner().invoke(app, words)
    assert made.exit_code == 0, made.output
    page = (tmp_path / "imagenet-c-tables.md").read_text(encoding="utf-8").splitlines()
    own = next(line for line in page if line.startswith("| resnet50_224 |"))
    own_mce = next(
        row
        for row in csv.DictReader(scores.read_text().splitlines())
        if (row["model"], row["metric"]) == ("resnet50_224", "mce")
    )
    assert own.split(" | ")[2] == f"{100 * float(own_mce['value']):.1f}"
    assert CliRunner().invoke(app, [*words[:3], "x", "--data", "photos=x"]).exit_code == 2

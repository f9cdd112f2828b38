"""The option `--filter`: names of results, errors for typing mistakes, and the list of filters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort.cli._app import app
from beaufort.testing._contracts import digit
from tests.commands import shows


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    file = tmp_path / "digits.npz"
    images = np.stack([digit(variant=i) for i in range(6)])
    np.savez(file, images=images, labels=np.arange(6) % 10)
    return file


def invoke(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_run_check_and_compare(digits: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    options = ["run", "--model", "demo:digits", "--data", str(digits), "--corruption", "contrast"]
    options += ["--severity", "3", "--store", store]
    invoke(*options)
    data = json.loads(invoke(*options, "--filter", "stretch:cut=1", "--filter", "clahe:tiles=4", "--json"))
    assert {result["model"] for result in data["results"]} == {"digits+stretch-cut1+clahe-tiles4"}
    assert "digits+stretch-cut1+clahe-tiles4" in invoke(
        "compare", "--store", store, "digits", "digits+stretch-cut1+clahe-tiles4"
    )
    checked = invoke("check", "demo:digits", "--filter", "stretch")
    assert checked.startswith("digits+stretch: 10 classes")


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (["ten-crop"], "short side 32 bilinear, center 32×32, ten-crop of 28×28"),
        (["ten-crop:pad=2"], "short side 28 bilinear, center 28×28, ten-crop-pad2 of 28×28"),
        (["stretch", "clahe:tiles=4"], "short side 28 bilinear, center 28×28, stretch, clahe-tiles4"),
    ],
)
def test_check_prints_preprocessing(filters: list[str], message: str) -> None:
    chosen = [part for one in filters for part in ("--filter", one)]
    assert f"\npreprocessing: {message}, gray 0..1, " in invoke("check", "demo:digits", *chosen)


def test_misspelled_filter_and_list_of_filters(digits: Path) -> None:
    output = invoke("check", "demo:digits", "--filter", "strech", code=2)
    assert shows(output, "'strech'", "'stretch'")
    names = [one["name"] for one in json.loads(invoke("ls", "filters", "--json"))]
    assert names == ["clahe", "equalize", "multi-crop", "nlm", "stretch", "ten-crop"]
    listed = invoke("ls", "filters")
    assert "clip=2.0,tiles=8,above=…,below=…" in listed
    assert "mirror=yes" in listed


def test_filters_passed_by_two_options_are_an_error(digits: Path) -> None:
    twice = ("--filter", "stretch", "--set", "filter=clahe")
    message = "beaufort: --filter and --set filter=… cannot be used together\n"
    data = ("--data", str(digits))
    assert invoke("check", "demo:digits", *twice, code=2) == message
    assert invoke("run", "--model", "demo:digits", *data, "--corruption", "fog", *twice, code=2) == message
    again = invoke("check", "demo:digits", "--set", "filter=stretch", "--set", "filter=clahe", code=2)
    assert shows(again, "'filter'", "twice")

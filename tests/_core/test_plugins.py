"""Corruptions, datasets and suites of a plug-in package are available in every command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from beaufort._core.errors import OptionError
from beaufort._core.plugins import load_plugins
from beaufort.suites import get_suite, register_suite
from tests.commands import shows

MODULE = '''
"""A corruption, a kind of dataset, a metric, a suite and a model of a plug-in package."""

from typing import NamedTuple

import numpy as np

from beaufort.corruptions import corruption
from beaufort.data import Reader, from_arrays, readers
from beaufort.metrics import metric
from beaufort.suites import Suite, register_suite


class Params(NamedTuple):
    """How dark it gets."""

    share: float


@corruption("weather", levels={"imagenet": [Params(s) for s in (0.9, 0.8, 0.7, 0.6, 0.5)]}, tensors=False)
def dusk(images, p, ops):
    """Darken the image."""
    return (images * p.share).astype(np.uint8)


def open_stripes(location, part):
    images = np.zeros((20, 32, 32, 3), np.uint8)
    images[::2, :16] = 200
    images[1::2, 16:] = 200
    return from_arrays("stripes", images, np.arange(20) % 2)


@metric(better="lower", of_errors=True)
def night_error(errors, clean):
    """What a night costs: half of it dusk, half of it day."""
    return (errors["dusk"] + clean) / 2


readers.register("stripes", Reader("stripes", open_stripes, lambda path: False, "nothing on the disk"))
register_suite(
    Suite(
        name="dusk-c",
        version=1,
        dataset="stripes",
        scale="relative",
        corruptions=("dusk",),
        severities=(1, 5),
        metrics=("night_error", "mean_accuracy"),
    )
)


def top_or_bottom():
    def classify(images):
        means = images.mean(axis=(2, 3))
        return np.stack([means[:, :16].mean(axis=1), means[:, 16:].mean(axis=1)], axis=1).astype(np.float32)

    return classify
'''


ENTRIES = """
[beaufort.plugins]
street = street_weather
[beaufort.models]
street-net = street_weather:top_or_bottom
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package as pip would have installed it, with an entry point."""
    site = tmp_path / "site"
    info = site / "street_weather-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "street_weather.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: street-weather\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    return site


def beaufort(*args: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    extra = [str(path)] if path else []
    python_path = os.pathsep.join([*extra, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "beaufort", *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": python_path},
    )


RUN = ("run", "--model", "python:street_weather:top_or_bottom", "--suite", "dusk-c", "--data", "stripes:here")


@pytest.mark.slow
def test_an_installed_package_reaches_the_command_line(package: Path, tmp_path: Path) -> None:
    named = (*RUN[:2], "street-net", *RUN[3:])
    done = beaufort(*named, "--store", "results", "--engine", "processes:2", cwd=tmp_path, path=package)
    assert done.returncode == 0, done.stderr
    assert shows(done.stdout, "dusk-c@1", "20 images", "3 conditions")
    page = beaufort("report", "results", "-o", "page.html", cwd=tmp_path, path=package)
    assert page.returncode == 0, page.stderr
    text = (tmp_path / "page.html").read_text()
    assert all(part in text for part in ("dusk", "Night error", "What a night costs"))
    without = beaufort("report", "results", "--format", "md", cwd=tmp_path)
    assert without.returncode == 2
    for fact in ("dusk", "night_error", "--import"):
        assert fact in without.stderr


@pytest.mark.slow
def test_a_module_is_imported_by_name(package: Path, tmp_path: Path) -> None:
    (tmp_path / "street_weather.py").write_text(MODULE)
    done = beaufort(*RUN, "--store", "results", "--import", "street_weather", cwd=tmp_path)
    (report,) = [line.split() for line in done.stdout.splitlines() if "beaufort report" in line]
    assert beaufort(*report[1:], cwd=tmp_path).returncode == 0  # passed with --import
    missing = beaufort("--import", "stret_weather", "ls", "suites", cwd=tmp_path)
    assert missing.returncode == 2
    assert "'stret_weather'" in missing.stderr


def test_a_report_needs_the_metrics_of_its_suite(tmp_path: Path) -> None:
    plain = MODULE.replace('corruptions=("dusk",)', 'corruptions=("contrast",)').replace(
        'errors["dusk"]', 'errors["fog"]'
    )
    (tmp_path / "street_weather.py").write_text(plain)
    done = beaufort(*RUN, "--store", "results", "--import", "street_weather", cwd=tmp_path)
    assert done.returncode == 2
    for fact in ("night_error", "contrast", "KeyError: 'fog'"):
        assert fact in done.stderr
    without = beaufort("report", "results", "--format", "md", cwd=tmp_path)
    assert without.returncode == 2
    assert "night_error" in without.stderr
    assert "--import" in without.stderr


def test_a_broken_package_is_a_warning(package: Path, tmp_path: Path) -> None:
    (package / "street_weather.py").write_text("import no_such_module_anywhere\n")
    listed = beaufort("ls", "suites", cwd=tmp_path, path=package)
    assert listed.returncode == 0
    assert shows(listed.stderr, "street", "street-weather")
    assert "imagenet-c" in listed.stdout


def test_modules_are_remembered_for_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BEAUFORT_IMPORT", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "first_of_two", None)  # restored when the test is over
    monkeypatch.delitem(sys.modules, "first_of_two")
    (tmp_path / "first_of_two.py").write_text("")
    monkeypatch.setenv("BEAUFORT_IMPORT", "json")
    load_plugins(["first_of_two, json"])
    assert os.environ["BEAUFORT_IMPORT"] == "json,first_of_two"
    assert "first_of_two" in sys.modules


def test_a_published_name_is_not_taken() -> None:
    with pytest.raises(OptionError, match="'mnist-c'"):
        register_suite(get_suite("mnist-c"))


def test_a_command_that_cannot_be_loaded_leaves_the_others_alone(package: Path, tmp_path: Path) -> None:
    entries = package / "street_weather-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[beaufort.commands]\nstreet = street_weather_missing:app\n")
    listed = beaufort("--help", cwd=tmp_path, path=package)
    assert listed.returncode == 0
    assert "corrupt" in listed.stdout
    assert shows(listed.stderr, "command street", "cannot be loaded")
    assert beaufort("street", cwd=tmp_path, path=package).returncode == 2

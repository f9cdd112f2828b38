"""Archives of predictions return what was packed, and committed pages follow from committed archives."""

from __future__ import annotations

import csv
import shutil
import sys
from pathlib import Path

import numpy as np
import pack_predictions
import pytest

from beaufort._core.errors import ImageFileError
from beaufort.studies import reproduce
from beaufort.studies.prediction_archive import (
    ARCHIVE,
    archived,
    find_predictions,
    has_predictions,
    predictions_by_seed,
)
from beaufort.studies.predictions import StudyPredictions, correct_only, write_predictions

RESULTS = Path(__file__).resolve().parents[2] / "results"


def test_packed_predictions_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, 9, 37).astype(np.uint8)
    files = {
        f"cifar/net-seed{seed}.npz": correct_only(
            ("clean", "fog@1", "fog@2"), rng.integers(0, 2, (3, 37)).astype(np.uint8), {"seed": seed}
        )
        for seed in (0, 1, 10)
    }
    files["predictions/icons@style-seed0.npz"] = StudyPredictions(
        ("style",), rng.integers(0, 9, (1, 37)).astype(np.uint8), labels, {"ids": ["é", "b"]}
    )
    for file, one in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        write_predictions(tmp_path / file, one)
    monkeypatch.setattr(sys, "argv", ["pack_predictions.py", str(tmp_path)])
    pack_predictions.main()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [ARCHIVE]
    assert all(pack_predictions.same(find_predictions(tmp_path, file), one) for file, one in files.items())
    assert [one.facts["seed"] for one in predictions_by_seed(tmp_path, "cifar")["net"]] == [0, 1, 10]
    assert set(predictions_by_seed(tmp_path, "predictions")) == {"icons@style"}
    assert has_predictions(tmp_path, "cifar/net-seed10.npz")
    assert not has_predictions(tmp_path, "cifar/net-seed2.npz")
    later = correct_only(("clean",), np.ones((1, 37), np.uint8), {"seed": 1})
    write_predictions(tmp_path / "cifar" / "net-seed1.npz", later)  # a newer file counts, and is packed later
    assert pack_predictions.same(find_predictions(tmp_path, "cifar/net-seed1.npz"), later)
    pack_predictions.main()
    assert len(archived(tmp_path)) == len(files)
    assert pack_predictions.same(archived(tmp_path)["cifar/net-seed1.npz"], later)


def test_folders_of_earlier_versions_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders and archives of earlier versions, such as those in `results`, have other names of folders."""
    one = correct_only(("clean",), np.ones((1, 5), np.uint8), {"seed": 0})
    for folder in ("predictions", "photos/fronts"):
        (tmp_path / folder).mkdir(parents=True)
    write_predictions(tmp_path / "predictions" / "net-seed0.npz", one)
    write_predictions(tmp_path / "photos" / "filters" / "clean.npz", one)

    def check() -> None:
        assert has_predictions(tmp_path, "predictions/net-seed0.npz")
        assert pack_predictions.same(find_predictions(tmp_path, "photos/filters/clean.npz"), one)
        assert pack_predictions.same(predictions_by_seed(tmp_path, "predictions")["net"][0], one)

    check()
    monkeypatch.setattr(sys, "argv", ["pack_predictions.py", str(tmp_path)])
    pack_predictions.main()
    assert not list(tmp_path.rglob("*.npz"))
    check()
    assert len(predictions_by_seed(RESULTS / "icons-50", "predictions")) > 10
    assert has_predictions(RESULTS / "enhancements", "photos/filters/clean.npz")


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / ARCHIVE).write_bytes((RESULTS / "icons-50" / ARCHIVE).read_bytes()[:-100])
    with pytest.raises(ImageFileError, match=ARCHIVE):
        archived(tmp_path)


def rebuilt(study: str, committed: Path, folder: Path) -> list[str]:
    """Write the page of a study from the committed predictions; return the files that differ."""
    folder.mkdir(exist_ok=True)
    for name in (ARCHIVE, "study.json"):
        shutil.copy(committed / name, folder / name)
    reproduce(study, folder, only=["page"])
    written = [path.name for path in sorted(folder.iterdir())]
    assert {path.name for path in committed.iterdir() if path.is_file()} == set(written)
    return [name for name in written if not equal(folder / name, committed / name)]


def equal(one: Path, other: Path) -> bool:
    """Whether two files are equal; the last digit of an interval may depend on the processor."""
    if one.suffix != ".csv":
        return one.read_bytes() == other.read_bytes()
    pairs = zip(*(path.read_text(encoding="utf-8").splitlines() for path in (one, other)), strict=True)
    cells = [both for rows in pairs for both in zip(*csv.reader(rows), strict=True)]
    return all(a == b or near(a, b) for a, b in cells)


def near(one: str, other: str) -> bool:
    """Whether two cells have numbers that differ by at most one in the third digit."""
    try:
        return abs(float(one) - float(other)) < 0.0015
    except ValueError:
        return False


@pytest.mark.slow
def test_the_page_about_icons_follows_from_its_predictions(tmp_path: Path) -> None:
    assert rebuilt("icons-50", RESULTS / "icons-50", tmp_path / "icons") == []


@pytest.mark.nightly
def test_the_page_about_enhancements_follows_from_its_predictions(tmp_path: Path) -> None:
    assert rebuilt("imagenet-c-enhancements", RESULTS / "enhancements", tmp_path / "enhancements") == []


def test_the_page_of_a_study_of_ones_own_follows_from_its_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(RESULTS.parent)  # the page names the study's file
    committed, folder = RESULTS / "mnist-c-recipe", tmp_path / "recipe"
    folder.mkdir()
    shutil.copy(committed / "study.yaml", folder)
    assert rebuilt("results/mnist-c-recipe/study.yaml", committed, folder) == []


def test_the_page_about_mined_digits_follows_from_its_tables(tmp_path: Path) -> None:
    pytest.importorskip("diffusers", reason="diffusers is not installed; the extra mining has it")
    folder = tmp_path / "mined-digits"
    shutil.copytree(RESULTS / "mined-digits", folder)
    (folder / "README.md").unlink()
    reproduce("mined-digits", folder, only=["page"])
    assert (folder / "README.md").read_bytes() == (RESULTS / "mined-digits" / "README.md").read_bytes()


def test_results_are_small() -> None:
    files = [path for path in RESULTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 25_000_000
    assert not [path for path in files if path.suffix == ".npz"]

"""Columns of CSV files, and what they do to scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.results import compare, open_results, read_column, score
from beaufort.store import FileStore

Fill = Callable[..., FileStore]


def write(folder: Path, text: str) -> str:
    path = folder / "photos.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_ids_stand_in_their_column_or_in_the_first(tmp_path: Path) -> None:
    file = write(tmp_path, "patient,id\np1,a\np2,b\n")
    assert read_column(f"{file}:patient") == {"a": "p1", "b": "p2"}
    file = write(tmp_path, '\ufeffphoto,camera\na,"one, old"\n\nb,two\n')
    assert read_column(f"{file}:camera") == {"a": "one, old", "b": "two"}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("id,patient\na,1\n", "patients", "did you mean 'patient'"),
        ("id,patient\na,1\na,2\n", "patient", "line 3: .*'a'"),
        ("id,patient\na,1,2\n", "patient", "line 2: 3 fields, expected 2"),
        ("id,patient\na,\n", "patient", "line 2: patient"),
        ("id,patient,patient\na,1,2\n", "patient", "'patient'"),
        ("id,patient\n", "patient", "no rows"),
        ("", "patient", "empty"),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, text: str, column: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        read_column(f"{write(tmp_path, text)}:{column}")


def test_unknown_column_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"FILE\.csv:COLUMN"):
        read_column("photos.csv")
    with pytest.raises(OptionError, match=r"nothing\.csv"):
        read_column(f"{tmp_path / 'nothing.csv'}:patient")
    (tmp_path / "bytes.csv").write_bytes(b"id,patient\n\xff\xfe,1\n")
    with pytest.raises(OptionError, match="UTF-8"):
        read_column(f"{tmp_path / 'bytes.csv'}:patient")


def test_every_image_needs_a_value(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.9}, images=20))
    with pytest.raises(BeaufortError, match="19 of 20"):
        score(results, groups={"digit/0": "a"})


def test_groups_of_whole_clusters_are_less_sure(fill: Fill) -> None:
    results = open_results(fill("s", {"net": 0.8}, images=120))
    ids = results.predictions("net").ids
    groups = {image: "ab"[i % 2] for i, image in enumerate(ids)}
    clusters = {image: str(i // 12) for i, image in enumerate(ids)}
    alone = score(results, groups=groups, calibration=False).models[0].groups
    together = score(results, groups=groups, clusters=clusters, calibration=False).models[0].groups
    assert alone is not None
    assert together is not None
    assert together.accuracies["a"].value == pytest.approx(alone.accuracies["a"].value)
    assert (alone.accuracies["a"].n, together.accuracies["a"].n) == (60, 10)
    assert together.accuracies["a"].half_width > alone.accuracies["a"].half_width
    assert together.worst.low == min(one.low for one in together.accuracies.values())


def test_tests_under_one_condition_respect_clusters(fill: Fill) -> None:
    """Copies of an image in one cluster say no more than the image."""
    results = open_results(fill("s", {"good": 0.95, "bad": 0.6}, images=200))
    ids = results.predictions("good").ids
    alone = compare(results)
    together = compare(results, clusters={image: str(i // 50) for i, image in enumerate(ids)})
    pair = ("bad", "good")
    assert min(test.p for test in alone.conditions[pair]) < 1e-6
    assert min(test.p for test in together.conditions[pair]) > 0.01

"""Models on a mined set: who is right, and where they fail."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from beaufort.cli import app
from beaufort.mining import (
    MinedSet,
    confusions,
    export_set,
    make_questions,
    open_generated,
    open_set,
    predict_set,
    score_set,
    select,
    write_evaluation_report,
    write_selection_report,
)
from tests.mining.world import WIDE_LABELS, bold, faint, middle, vague, wide


@pytest.fixture
def mined(images: Path, tmp_path: Path) -> MinedSet:
    """The images that `bold` fails on, exported."""
    data, made = open_generated(images)
    chosen = select(predict_set([bold(), vague()], data, tmp_path / "store"), made, ["bold"])
    write_selection_report(chosen, tmp_path / "selection")
    selection = tmp_path / "selection" / "selection.csv"
    export_set(tmp_path / "set", images, selection, labels=WIDE_LABELS)
    return open_set(str(tmp_path / "set"))


def test_scores(mined: MinedSet, tmp_path: Path) -> None:
    predictions = predict_set([bold(), faint()], mined.data, tmp_path / "store")
    rows = {(one.model, one.kind): one for one in score_set(mined, predictions)}
    assert not rows["faint", "all"].surrogate
    assert rows["bold", "all"].surrogate
    assert rows["bold", "all"].accuracy.value == 0
    right = ~predictions.failed[1]
    assert rows["faint", "all"].accuracy.value == pytest.approx(right.mean())
    texture = np.array([image.kind == "texture" for image in mined.images])
    assert rows["faint", "texture"].accuracy.value == pytest.approx(right[texture].mean())
    each = [right[predictions.labels == label].mean() for label in np.unique(predictions.labels)]
    assert rows["faint", "all"].category_mean.value == pytest.approx(np.mean(each))
    assert sum(confusions(predictions, "faint").values()) == predictions.failed[1].sum()


def test_the_set_brings_its_label_space(mined: MinedSet, tmp_path: Path) -> None:
    """Any output of the category is right, and every output competes."""
    predictions = predict_set([wide()], mined.data, tmp_path / "store", labels=mined.labels)
    plain = predict_set([middle()], mined.data, tmp_path / "store")
    assert (predictions.predicted == plain.predicted).all()


def test_the_report(mined: MinedSet, tmp_path: Path, show: Any) -> None:
    predictions = predict_set([bold(), faint(), vague()], mined.data, tmp_path / "store")
    write_evaluation_report(mined, predictions, tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "scores.csv").read_text().splitlines()))
    assert {row["role"] for row in rows if row["model"] == "bold"} == {"surrogate"}
    assert {row["role"] for row in rows if row["model"] == "faint"} == {"evaluated"}
    assert set(rows[0]) >= {"accuracy_images", "category_mean_categories"}
    for table in ("nuisances", "categories", "confusions"):
        output = list(csv.DictReader((tmp_path / "out" / f"{table}.csv").read_text().splitlines()))
        assert {row["model"] for row in output if row["role"] == "surrogate"} == {"bold"}
    page = show(tmp_path / "out" / "index.html")
    for section in ("nuisances", "categories"):  # marked wherever it stands
        assert "bold (surrogate)" in page.locator(f"#{section} thead").inner_text()
    assert "not surrogates" in page.locator("#confusions .lead").inner_text()
    total = sum((confusions(predictions, model) for model in ("faint", "vague")), Counter())
    times = [int(text) for text in page.locator("#confusions tbody td:last-child").all_inner_texts()]
    assert times == [count for _, count in total.most_common(15)]
    assert "failures of bold" in page.locator(".about").inner_text()
    assert page.locator("#scores tbody th small").all_inner_texts() == ["surrogate"]
    for section in ("nuisances", "categories", "confusions"):
        assert page.locator(f"#{section} tbody tr").count() > 0
    assert page.locator("#gallery figure").count() == min(48, len(mined.data))


def test_zero_shot_over_the_names_of_the_categories(
    mined: MinedSet, tmp_path: Path, tiny_clip: tuple[str, Any]
) -> None:
    text, _ = tiny_clip
    predictions = predict_set([faint(), text], mined.data, tmp_path / "store", labels=None)
    assert len(predictions.models) == 2
    turned = predict_set([text, faint()], mined.data, tmp_path / "store", labels=None)
    assert turned.models == predictions.models[::-1]  # as given: the first ones are the surrogates
    assert (turned.predicted == predictions.predicted[::-1]).all()
    from beaufort.models import load_model

    names = list(mined.data.classes)
    model = load_model(text, classes=names, templates="A photo of a {}", device="cpu")
    pixels = np.stack([mined.data[place].image for place in range(len(mined.data))])
    assert (model(pixels).argmax(axis=1) == predictions.predicted[1]).mean() > 0.95


def test_the_command(mined: MinedSet, tmp_path: Path) -> None:
    world = "python:tests.mining.world"
    result = CliRunner().invoke(
        app,
        ["mine", "evaluate", str(tmp_path / "set"), "--model", f"{world}:wide", "--store",
         str(tmp_path / "store"), "--output", str(tmp_path / "out")],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "wide" in result.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "categories.csv", "confusions.csv", "index.html", "nuisances.csv", "scores.csv",
    }  # fmt: skip


def test_choices_belong_to_the_set_and_to_one_model_each(mined: MinedSet, tmp_path: Path) -> None:
    predictions = predict_set([faint()], mined.data, tmp_path / "store")
    questions = make_questions(predictions, "faint", orders="both")
    header = {"model": {"name": "parrot"}, "data": mined.data.digest()}

    def write(name: str, first: dict[str, Any]) -> str:
        rows = [
            {
                "image": one.image,
                "truth": one.label,
                "distractor": one.distractor,
                "truth_first": one.label_first,
                "answer": one.label,
            }
            for one in questions
        ]
        (tmp_path / name).write_text("\n".join(map(json.dumps, [first, *rows])) + "\n")
        return str(tmp_path / name)

    def evaluate(*files: str) -> Result:
        words = ["mine", "evaluate", str(tmp_path / "set"), "--model", "python:tests.mining.world:wide",
                 "--store", str(tmp_path / "store"), "--output", str(tmp_path / "out")]  # fmt: skip
        return CliRunner().invoke(app, [*words, *(word for file in files for word in ("--choices", file))])

    own, again = write("own.jsonl", header), write("again.jsonl", header)
    result = evaluate(own, again)
    assert result.exit_code == 2
    assert "'parrot'" in " ".join(result.output.split())
    result = evaluate(write("other.jsonl", {**header, "data": "0" * 64}))
    assert result.exit_code == 2
    assert "other.jsonl" in "".join(result.output.split())
    assert not (tmp_path / "out").exists()
    assert evaluate(own).exit_code == 0
    rows = list(csv.DictReader((tmp_path / "out" / "choices.csv").read_text().splitlines()))
    assert [(row["model"], int(row["images"]), int(row["questions"])) for row in rows] == [
        ("parrot", len(mined.data), 2 * len(mined.data))
    ]
    assert float(rows[0]["accuracy"]) == float(rows[0]["consistent"]) == 1
    assert evaluate().exit_code == 0
    assert not (tmp_path / "out" / "choices.csv").exists()

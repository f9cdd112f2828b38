"""Tables for papers: the numbers of the scores, the best marked, published results beside them."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.cli import app
from beaufort.data import Dataset
from beaufort.metrics import published_table
from beaufort.report import figure, to_table
from beaufort.results import Scores
from beaufort.suites import get_suite, parse_suite


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def imagenet(make: SimpleNamespace) -> Scores:
    scores: Scores = make.scored(make.results_of(["net", "a_b"], get_suite("imagenet-c"), 40))
    return scores


def test_groups_are_means_with_an_interval_of_their_own(imagenet: Scores) -> None:
    found = {row["Model"]: row for row in rows(to_table(imagenet, "csv"))}
    for model in imagenet.models:
        noise = [model.corruptions[f"{name}_noise"] for name in ("gaussian", "shot", "impulse")]
        row = found[model.model]
        assert float(row["Noise"]) == pytest.approx(100 * sum(one.value for one in noise) / 3, abs=0.01)
        narrow = float(row["Noise high"]) - float(row["Noise low"])
        assert narrow < 200 * min(one.half_width for one in noise)
        mean = 1 - model.metrics["mean_accuracy"].value
        assert float(row["Mean"]) == pytest.approx(100 * mean, abs=0.01)
        assert model.clean is not None
        assert float(row["Clean"]) == pytest.approx(100 * (1 - model.clean.value), abs=0.01)


def test_accuracy_is_what_errors_leave(imagenet: Scores) -> None:
    errors = rows(to_table(imagenet, "csv", columns="corruption"))
    accuracies = rows(to_table(imagenet, "csv", columns="corruption", measure="accuracy"))
    for error, accuracy in zip(errors, accuracies, strict=True):
        assert float(accuracy["fog"]) == pytest.approx(100 - float(error["fog"]), abs=0.011)
        assert float(accuracy["fog low"]) == pytest.approx(100 - float(error["fog high"]), abs=0.011)


def test_the_best_is_bold(imagenet: Scores, alone: Scores) -> None:
    text = to_table(imagenet, "md", intervals=False)
    assert "[" not in text.partition("\n\n")[2]
    lines = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")][2:]
    for column in list(zip(*lines, strict=True))[1:]:
        shown = [float(cell.strip(" *")) for cell in column]
        assert ["*" in cell for cell in column] == [value == min(shown) for value in shown]
    best = to_table(imagenet, "latex", measure="accuracy")
    assert r"\textbf{" in best
    assert r"a\_b" in best
    assert r"\toprule" in best
    assert "**" not in to_table(alone, "md")


def test_published_results_stand_below(imagenet: Scores, digits: tuple[Scores, Dataset]) -> None:
    found = {row["Model"]: row for row in rows(to_table(imagenet, "csv", measure="ce", published=True))}
    paper = published_table("imagenet-c-table1")
    assert float(found["ResNet-50"]["mCE"]) == pytest.approx(100 * paper["ResNet-50"]["mce"], abs=0.01)
    assert found["ResNet-50"]["Source"] == "published"
    assert found["ResNet-50"]["Digital"] == ""  # a cell of the paper could not be read
    assert found["ResNet-50"]["mCE low"] == ""
    assert found["net"]["mCE low"]
    mce = next(one for one in imagenet.models if one.model == "net").metrics["mce"].value
    assert float(found["net"]["mCE"]) == pytest.approx(100 * mce, abs=0.01)
    assert "AlexNet (published) | 43.5" in to_table(imagenet, "md", published=True)
    text = to_table(digits[0], "md", measure="accuracy", published=True)
    assert "Conv1 (published) | 99.2" in text
    assert "Mu, N." in text


def test_what_is_refused(imagenet: Scores, scores: Scores, make: SimpleNamespace) -> None:
    with pytest.raises(UnknownNameError, match="columns 'kind'"):
        to_table(scores, columns="kind")
    with pytest.raises(UnknownNameError, match="measure 'mce'"):
        to_table(scores, measure="mce")
    with pytest.raises(OptionError, match="needs a baseline to divide by, and these scores have none; name"):
        to_table(scores, measure="ce")
    results = make.results_of(["net", "b"], get_suite("imagenet-c"), 4)
    unable = r"and net cannot divide here\. mCE is not shown: not enough images"
    with pytest.raises(OptionError, match=unable):
        to_table(make.scored(results, baseline="net"), measure="ce")
    with pytest.raises(OptionError, match="imagenet-c and mnist-c, got the suite 'small'"):
        to_table(scores, published=True)
    with pytest.raises(UnknownNameError, match="table format"):
        to_table(scores, "html")
    other = make.scored(make.results_of(["net", "b"], get_suite("imagenet-c"), 40), baseline="net")
    with pytest.raises(OptionError, match="relative to alexnet, got another baseline"):
        to_table(other, measure="ce", published=True)


def run(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["report", *map(str, words)])
    return found.exit_code, found.output


def test_the_command(store: Path, tmp_path: Path) -> None:
    code, said = run(store, "--table", "group,intervals=no,measure=accuracy", "--model", "good")
    assert code == 0, said
    assert "| Model | Clean | Noise | Weather | Digital | Mean |" in said
    target = tmp_path / "table.tex"
    assert run(store, "--table", "corruption", "-o", target)[0] == 0
    assert r"\bottomrule" in target.read_text(encoding="utf-8")
    code, said = run(store, "--table", "group", "--format", "html")
    assert code == 2
    assert "format must be one of md, latex, csv for a table, got 'html'" in said


def test_several_stores(store: Path, data: Dataset, make: SimpleNamespace, tmp_path: Path) -> None:
    make.fill(tmp_path / "other", data, names=["new", "good"])
    code, said = run(store, tmp_path / "other", "--table", "group")
    assert code == 0, said
    names = {line.split("|")[1].strip() for line in said.splitlines() if line.startswith("| ")}
    assert {"bad", "middling", "new", "good (store)", "good (other)"} <= names
    make.fill(tmp_path / "apart", make.dataset(count=20), names=["new"])
    code, said = run(store, tmp_path / "apart", "--format", "md")
    assert code == 2
    assert "other data cannot be compared" in said


def test_a_data_set_without_corruptions_has_no_table(make: SimpleNamespace) -> None:
    parts = parse_suite(
        "name: two\nversion: 1\nparts:\n"
        "  - {dataset: toys, scale: cifar, corruptions: [fog], severities: [1, 5]}\n"
        "  - {dataset: drawings, counterpart: toys}\n"
    ).parts
    bare = make.scored(make.results_of(["net", "other"], parts[1], 20))
    with pytest.raises(OptionError, match="needs corruptions, and drawings@1 has none"):
        to_table(bare)
    with pytest.raises(OptionError, match="figures need corruptions, and drawings@1 has none"):
        figure(bare, "comparison")
    assert "other" in bare._repr_html_()

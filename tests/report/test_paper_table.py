"""Tables for papers: the values of the scores, the best in bold, and published results."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.cli import app
from beaufort.data import Dataset
from beaufort.metrics import published_table
from beaufort.report import figure, to_table
from beaufort.results import Scores
from beaufort.suites import get_suite, parse_suite
from tests.commands import shows


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


def test_only_significant_differences_are_bold(
    imagenet: Scores, make: SimpleNamespace, alone: Scores
) -> None:
    assert "**" not in to_table(imagenet, "md", intervals=False)  # too few images
    assert "**" not in to_table(alone, "md")
    suite = get_suite("imagenet-c")
    results = make.results_of(["net", "a_b"], suite, 60)
    good = results.sources["net"]
    results.sources["net"] = replace(good, top=np.repeat(good.labels[None, :, None], 76, 0).repeat(2, 2))
    scores = make.scored(results)
    lines = {line.split("|")[1].strip(): line for line in to_table(scores, "md").splitlines() if "|" in line}
    assert lines["net"].count("**") == 2 * 5  # all but the clean error, of which there is too little
    assert "**" not in lines["a\\_b"]
    for measure in ("error", "accuracy"):
        latex = to_table(scores, "latex", measure=measure)
        assert latex.count(r"\textbf{") == 5
        assert r"a\_b" in latex


@pytest.mark.parametrize("name", ["imagenet-c", "cifar10-c", "mnist-c"])
def test_the_layout_of_a_paper(name: str, make: SimpleNamespace, tmp_path: Path) -> None:
    suite = get_suite(name)
    scores = make.scored(make.results_of(["net", "a_b"], suite, 40))
    found = {row["Model"]: row for row in rows(to_table(scores, "csv", columns=name))}
    model = next(model for model in scores.models if model.model == "net")
    values = model.ce or model.corruptions
    mean = 100 * sum(value.value for value in values.values()) / 15
    assert float(found["net"]["mCE" if model.ce else "Mean"]) == pytest.approx(mean, abs=0.01)
    assert float(found["net"]["Fog"]) == pytest.approx(100 * values["fog"].value, abs=0.01)
    assert ("Rel. mCE" in found["net"]) == bool(model.ce)
    if model.ce:
        relative = 100 * model.metrics["relative_mce"].value
        assert float(found["net"]["Rel. mCE"]) == pytest.approx(relative, abs=0.01)
    assert len(found["net"]) == 2 + 15 + (3 if model.ce else 2)
    latex = to_table(scores, "latex", columns=name, intervals=True)
    assert r"{c}{Noise}" in latex
    assert r"\resizebox{\linewidth}" in latex
    if name == "cifar10-c":
        with pytest.raises(OptionError, match=r"cifar10-c requires .* mnist-c@"):
            to_table(make.scored(make.results_of(["net"], get_suite("mnist-c"), 20)), columns="cifar10-c")
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    packages = "".join(f"\\usepackage{{{package}}}" for package in ("booktabs", "graphicx"))
    document = f"\\documentclass{{article}}{packages}\\begin{{document}}{latex}\\end{{document}}"
    (tmp_path / "t.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert b"Overfull \\hbox" not in done.stdout


def test_published_networks_have_every_cell(imagenet: Scores, digits: tuple[Scores, Dataset]) -> None:
    for scores, name in ((imagenet, "imagenet-c"), (digits[0], "mnist-c")):
        text = to_table(scores, "md", columns=name, published=True)
        published = [line for line in text.splitlines() if "(published)" in line]
        assert len(published) == {"imagenet-c": 7, "mnist-c": 6}[name]
        assert not any("–" in line for line in published)
    found = {row["Model"]: row for row in rows(to_table(digits[0], "csv", columns="mnist-c", published=True))}
    assert float(found["ABS"]["Rel. mCE"]) == pytest.approx(233.93, abs=0.01)
    text = to_table(imagenet, "md", columns="imagenet-c", published=True)
    resnet = next(line for line in text.splitlines() if "ResNet-50" in line)
    assert (
        "| 23.9 | 76.7 | 105.0 | 80 | 82 | 83 | 75 | 89 | 78 | 80 | 78 | 75 | 66 | 57 | 71 | 85 | 77 |"
        in resnet
    )


def test_published_results_stand_below(imagenet: Scores, digits: tuple[Scores, Dataset]) -> None:
    found = {row["Model"]: row for row in rows(to_table(imagenet, "csv", measure="ce", published=True))}
    paper = published_table("imagenet-c-table1")
    assert float(found["ResNet-50"]["mCE"]) == pytest.approx(100 * paper["ResNet-50"]["mce"], abs=0.01)
    assert found["ResNet-50"]["Source"] == "published"
    digital = [71, 85, 77, 77]  # two of them are illegible in Table 1, and derived from Table 2
    assert float(found["ResNet-50"]["Digital"]) == pytest.approx(sum(digital) / 4, abs=0.01)
    assert found["ResNet-50"]["mCE low"] == ""
    assert found["net"]["mCE low"]
    mce = next(one for one in imagenet.models if one.model == "net").metrics["mce"].value
    assert float(found["net"]["mCE"]) == pytest.approx(100 * mce, abs=0.01)
    assert "AlexNet (published) | 43.5" in to_table(imagenet, "md", published=True)
    text = to_table(digits[0], "md", measure="accuracy", published=True)
    assert "Conv1 (published) | 99.2" in text
    assert "Mu, N." in text


def test_invalid_options_are_rejected(imagenet: Scores, scores: Scores, make: SimpleNamespace) -> None:
    with pytest.raises(UnknownNameError, match="columns 'kind'"):
        to_table(scores, columns="kind")
    with pytest.raises(UnknownNameError, match="measure 'mce'"):
        to_table(scores, measure="mce")
    with pytest.raises(OptionError, match=r"'ce'.*--baseline"):
        to_table(scores, measure="ce")
    results = make.results_of(["net", "b"], get_suite("imagenet-c"), 4)
    unable = r"net cannot be the divisor\. mCE is not shown: "
    with pytest.raises(OptionError, match=unable):
        to_table(make.scored(results, baseline="net"), measure="ce")
    with pytest.raises(OptionError, match="'small'"):
        to_table(scores, published=True)
    with pytest.raises(UnknownNameError, match="table format"):
        to_table(scores, "html")
    other = make.scored(make.results_of(["net", "b"], get_suite("imagenet-c"), 40), baseline="net")
    with pytest.raises(OptionError, match="--baseline"):
        to_table(other, measure="ce", published=True)


def run(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["report", *map(str, words)])
    return found.exit_code, found.output


def test_the_command(store: Path, tmp_path: Path) -> None:
    code, output = run(store, "--table", "group,intervals=no,measure=accuracy", "--model", "good")
    assert code == 0, output
    assert "| Model | Clean | Noise | Weather | Digital | Mean |" in output
    target = tmp_path / "table.tex"
    assert run(store, "--table", "corruption", "-o", target)[0] == 0
    assert r"\bottomrule" in target.read_text(encoding="utf-8")
    code, output = run(store, "--table", "group", "--format", "html")
    assert code == 2
    assert "got 'html'" in output


def test_several_stores(store: Path, data: Dataset, make: SimpleNamespace, tmp_path: Path) -> None:
    make.fill(tmp_path / "other", data, names=["new", "good"])
    code, output = run(store, tmp_path / "other", "--table", "group")
    assert code == 0, output
    names = {line.split("|")[1].strip() for line in output.splitlines() if line.startswith("| ")}
    assert {"bad", "middling", "new", "good (store)", "good (other)"} <= names
    make.fill(tmp_path / "apart", make.dataset(count=20), names=["new"])
    code, output = run(store, tmp_path / "apart", "--format", "md")
    assert code == 2
    assert shows(output, "different data", "compared")


def test_dataset_without_corruptions_has_no_table(make: SimpleNamespace) -> None:
    parts = parse_suite(
        "name: two\nversion: 1\nparts:\n"
        "  - {dataset: toys, scale: cifar, corruptions: [fog], severities: [1, 5]}\n"
        "  - {dataset: drawings, counterpart: toys}\n"
    ).parts
    bare = make.scored(make.results_of(["net", "other"], parts[1], 20))
    with pytest.raises(OptionError, match="requires corruptions, but drawings@1"):
        to_table(bare)
    with pytest.raises(OptionError, match="drawings@1"):
        figure(bare, "comparison")
    assert "other" in bare._repr_html_()

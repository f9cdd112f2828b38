"""`beaufort report`: files, formats and rejected options."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.cli import app
from beaufort.data import Dataset
from beaufort.models import as_model
from beaufort.report import FORMATS, to_table, to_text, write_report, write_table
from beaufort.report.formats import find_format
from beaufort.results import Scores, evaluate


def run(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["report", *map(str, words)])
    return found.exit_code, found.output


def test_a_page(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = run(store, "--intervals", "resamples=200")
    assert code == 0
    assert output.splitlines()[-1].startswith("report.html: ")
    code, output = run(
        store, "-o", "mine.html", "--intervals", "resamples=200", "--title", "Mine", "--examples", "scene"
    )
    assert code == 0, output
    page = (tmp_path / "mine.html").read_text(encoding="utf-8")
    assert "<title>Mine</title>" in page
    assert "no test images" in page
    assert (
        run(
            store,
            "-o",
            "again.html",
            "--intervals",
            "resamples=200",
            "--title",
            "Mine",
            "--examples",
            "scene",
        )[0]
        == 0
    )
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_texts_go_to_standard_output(store: Path, tmp_path: Path) -> None:
    code, output = run(store, "--format", "json", "--intervals", "resamples=200", "--model", "good")
    assert code == 0
    assert json.loads(output)["config"]["model"] == "good"
    target = tmp_path / "table.tex"
    assert run(store, "-o", target, "--intervals", "resamples=200")[0] == 0
    assert r"\toprule" in target.read_text(encoding="utf-8")


def test_a_title_is_of_a_page(store: Path, tmp_path: Path) -> None:
    for words in (["--format", "md"], ["-o", tmp_path / "table.tex"], ["--table", "group"]):
        code, output = run(store, *words, "--intervals", "resamples=200", "--title", "Mine")
        assert code == 2
        assert "--title" in output


def test_stored_baseline_can_be_hidden(store: Path) -> None:
    code, output = run(
        store, "--format", "md", "--model", "good", "--baseline", "bad", "--intervals", "resamples=200"
    )
    assert code == 0
    assert "mCE vs bad" in output
    assert "| bad" not in output


def test_test_images(store: Path, data: Dataset, tmp_path: Path, make: SimpleNamespace) -> None:
    folder = tmp_path / "toys"
    folder.mkdir()
    np.save(folder / "images.npy", np.stack([data[i].image for i in range(len(data))]))
    np.save(folder / "labels.npy", data.labels)
    code, output = run(store, "--data", folder, "-o", tmp_path / "r.html", "--intervals", "resamples=200")
    assert code == 2  # the same images, and classes without names: other data
    assert "dataset of the run" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "x", "--examples", "scene"], "--data and --examples cannot be used together"),
        (["--examples", "model=x.onnx"], "--examples must name its images"),
        (["--format", "md", "--data", "x"], "cannot be used with the format md"),
        (["--format", "pdf"], "must be one of html, md"),
        (["--table", "published=yes"], "--table must name its columns"),
        (["--table", "group,mesure=ce"], "valid keys: measure=…, intervals=…, published=…"),
        (["--table", "group,intervals=never"], "intervals in --table must be yes or no"),
        (
            ["-o", "report.docx"],
            ".html, .htm, .md, .tex, .csv, .json, got report.docx, or pass --format",
        ),
        (["-o", "report"], ".json, got report, or pass --format"),
        (["-o", "."], "output must be a file"),
        (["--model", "unfinished"], "lacks 9 of the 10 conditions"),
        (["--model", "goood"], "did you mean 'good'"),
    ],
)
def test_invalid_options_are_rejected(store: Path, words: list[str], message: str, tmp_path: Path) -> None:
    extra = ["--format", "html"] if words == ["-o", "."] else []
    code, output = run(store, *words, *extra)
    assert code == 2
    assert message in output.replace("\n", " ")


ENDINGS = {"html": [".html", ".HTM"], "md": [".md"], "latex": [".tex"], "csv": [".csv"], "json": [".json"]}
ENDINGS["card"] = ENDINGS["md"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_format_and_an_ending_must_agree(kind: str, scores: Scores, tmp_path: Path) -> None:
    for ending in sorted({one for some in ENDINGS.values() for one in some}):
        target = tmp_path / f"report{ending}"
        if ending in ENDINGS[kind]:
            assert find_format(target, kind) == kind
            continue
        right = target.with_suffix(ENDINGS[kind][0])
        message = f"format {kind} contradicts the extension of {target}; write to {right}"
        with pytest.raises(OptionError, match=re.escape(message)):
            write_report(scores, target, format=kind)
    assert list(tmp_path.iterdir()) == []
    assert write_report(scores, tmp_path / "report.txt", format=kind).is_file()


def test_format_follows_from_the_suffix(scores: Scores, tmp_path: Path) -> None:
    """The file name determines the format in Python, too."""
    text = write_report(scores, tmp_path / "report.md").read_text(encoding="utf-8")
    assert text == to_text(scores, "md")
    assert write_table(scores, tmp_path / "t.csv").read_text(encoding="utf-8") == to_table(scores, "csv")
    with pytest.raises(OptionError, match=r"\.csv.*t\.html$"):
        write_table(scores, tmp_path / "t.html")
    with pytest.raises(OptionError, match=r"t\.html.*t\.md$"):
        write_table(scores, tmp_path / "t.html", format="md")
    with pytest.raises(UnknownNameError, match="unknown format 'pdf'"):
        write_report(scores, tmp_path / "t.md", format="pdf")


def test_the_command_writes_no_page_into_another_file(store: Path, tmp_path: Path) -> None:
    code, output = run(store, "-o", tmp_path / "r.md", "--format", "html")
    assert code == 2
    assert "format html contradicts" in output
    code, output = run(store, "-o", tmp_path / "t.csv", "--table", "group", "--format", "latex")
    assert code == 2
    assert "format latex contradicts" in output
    assert list(tmp_path.iterdir()) == []
    card = tmp_path / "README.md"
    assert run(store, "-o", card, "--format", "card", "--intervals", "resamples=200")[0] == 0
    assert card.read_text(encoding="utf-8").startswith("---\nmodel-index:")


def test_the_plain_name_selects_the_newest_of_two_versions(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3), np.uint8)
    for version in ("1", "2"):
        model = as_model(
            lambda images, gain=float(version): gain * images.mean(axis=(1, 2), dtype=np.float32),
            name="net",
            classes=3,
            version=version,
        )
        evaluate(model, ["contrast"], (images, np.arange(40) % 3), tmp_path)
    code, output = run(tmp_path, "--format", "csv", "--model", "net")
    assert code == 0, output
    assert len(set(re.findall(r"net#\w{8}(?=,)", output))) == 1
    code, output = run(tmp_path, "--format", "csv", "--model", "other")
    assert (code, "'other'" in output) == (2, True)

"""The first and second `beaufort run` of a new user."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort import evaluate
from beaufort.cli import _console, app
from beaufort.evaluation.provenance import provenance
from beaufort.results import open_results
from beaufort.store import FileStore
from beaufort.suites.conditions import Condition
from beaufort.testing._contracts import example_image
from tests.commands import shows

MODEL = """
import numpy as np
from beaufort.models import as_model

def toy(name="toy", gain=1):
    predict = lambda images: gain * images.astype(np.float32).mean(axis=(1, 2)) / 20
    return as_model(predict, name=name, classes=3, version=str(gain))

def other():
    return toy("other", -1)

def namesake():
    return toy("toy", -1)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with images of three classes, 40 × 40 pixels each, and a model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contact_nets.py").write_text(MODEL)
    for i in range(12):
        place = tmp_path / "images" / "abc"[i % 3] / f"{i}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(example_image(40, 40, variant=i)).save(place)
    return tmp_path


TOY = ("--model", "python:contact_nets:toy", "--data", "images", "--store", "kept")
FOG = ("--corruption", "fog", "--severity", "3")


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["run", *arguments])
    return result.exit_code, result.stdout, result.stderr


# Images that cannot be read


def test_a_repeated_run_remembers_what_could_not_be_read(folder: Path) -> None:
    (folder / "images" / "b" / "1.png").write_bytes(b"no image")
    for _ in range(2):
        code, _, errors = run(*TOY, *FOG)
        assert code == 1
        assert "problem: b/1.png: " in errors
        assert "1 image or file" in errors
        code, out, _ = run(*TOY, *FOG, "--json")
        (problem,) = json.loads(out)["problems"]
        assert (code, problem["id"]) == (1, "b/1.png")
    code, _, errors = run(*TOY, *FOG, "--config", "strict=true")
    assert (code, "b/1.png" in errors) == (2, True)


def test_an_image_too_small_to_corrupt_does_not_stop_the_run(folder: Path) -> None:
    Image.fromarray(example_image(10, 40, variant=1)).save(folder / "images" / "a" / "0.png")
    for _ in range(2):
        code, _, errors = run(*TOY, *FOG)
        assert code == 1
        assert "problem: a/0.png: " in errors
        assert "1 image or file" in errors
    code, _, errors = run(*TOY, *FOG, "--config", "strict=true")
    assert (code, "a/0.png: both sides" in errors) == (2, True)


def test_all_images_are_too_small(folder: Path) -> None:
    for file in (folder / "images").rglob("*.png"):
        Image.fromarray(example_image(8, 8, variant=1)).save(file)
    code, _, errors = run(*TOY, *FOG)
    assert (code, "images" in errors, "a/0.png: " in errors) == (2, True, True)
    found = evaluate("python:contact_nets:toy", [Condition("images")], "images")
    assert (found.results[0].images, found.problems) == (12, ())  # nothing is corrupted


def test_problems_of_an_earlier_run_that_was_shorter(folder: Path) -> None:
    (folder / "images" / "a" / "0.png").write_bytes(b"no image")
    assert run(*TOY, *FOG, "--config", "first=4")[0] == 1
    code, out, _ = run(*TOY, *FOG, "--json")
    assert (code, [one["id"] for one in json.loads(out)["problems"]]) == (1, ["a/0.png"])


def test_omitted_files_are_listed(folder: Path) -> None:
    (folder / "images" / "a" / "notes.txt").write_text("not an image")
    code, _, errors = run(*TOY, *FOG)
    assert (code, "note: " in errors, "a/notes.txt" in errors) == (0, True, True)


def test_a_shard_that_is_cut_is_a_problem(folder: Path) -> None:
    (folder / "label").write_text("0")
    with tarfile.open("cut.tar", "w") as shard:
        for image in sorted((folder / "images" / "a").iterdir()):
            shard.add(image, image.name)
            shard.add("label", f"{image.stem}.cls")
            end = shard.offset
    (folder / "cut.tar").write_bytes((folder / "cut.tar").read_bytes()[: end // 2])
    shards = ("--model", "python:contact_nets:toy", "--data", "cut.tar", "--store", "kept", *FOG)
    code, _, errors = run(*shards)
    assert code == 1
    assert "problem: cut.tar: " in errors
    assert "1 image or file" in errors
    code, _, errors = run(*shards, "--dry-run")
    assert "problem: cut.tar: " in errors


# Treatment of small images


@pytest.mark.usefixtures("frost")
def test_enlarging_is_reported_and_optional() -> None:
    tiny = (*TOY, "--suite", "tiny-imagenet-c", "--dry-run")
    code, _, errors = run(*tiny)
    assert code == 0
    assert "tiny-imagenet-c" in errors
    assert "(40 × 40)" in errors
    assert "--config prepare=none" in errors
    code, _, errors = run(*tiny, "--config", "prepare=none")
    assert (code, errors) == (0, "")
    code, _, errors = run(*tiny, "--config", "prepare=all")
    assert (code, "got 'all'" in errors) == (2, True)


def test_unprepared_images_have_separate_predictions(folder: Path) -> None:
    (folder / "mine.yaml").write_text(
        "{name: mine, version: 1, dataset: x, scale: cifar, corruptions: [fog], severities: [3], "
        "prepare: [resize 48, crop 40]}"
    )
    mine = (*TOY, "--suite", "mine.yaml", "--json")
    prepared, left = (json.loads(run(*mine, *more)[1]) for more in ((), ("--config", "prepare=none")))
    named = [one["scores"][0]["suite"] for one in (prepared, left)]
    assert named == ["mine@1", "mine-unprepared@1"]
    assert not {one["fingerprint"] for one in prepared["results"]} & {
        one["fingerprint"] for one in left["results"]
    }
    cells = FileStore("kept").cells()
    steps = {tuple(cells[one["fingerprint"]].condition["prepare"]) for one in left["results"]}
    assert steps == {("rgb",)}
    assert not any(one["reused"] for one in left["results"])
    assert open_results("kept", suite="mine-unprepared").suite.prepare == ()


# How a run ends


def test_it_ends_with_the_headline_and_the_next_command() -> None:
    code, out, _ = run(*TOY, "--model", "python:contact_nets:other", "--corruption", "fog,contrast")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "fog-contrast-1-5@1 on images: 12 images, 22 cells; 95 % intervals"
    assert lines[2].split("  ")[0] == "model"
    assert "Mean accuracy" in lines[2]
    rows = {line.split()[0]: line for line in lines[3:5]}
    assert rows.keys() == {"toy", "other"}
    assert all(row.count("[") >= 2 for row in rows.values())
    assert "  beaufort report kept --data images -o report.html" in lines
    assert any(line.startswith("  beaufort compare ") for line in lines)
    assert len(lines) < 15
    assert (
        "22 of them stored before"
        in run(*TOY, "--model", "python:contact_nets:other", "--corruption", "fog,contrast")[1]
    )


def test_the_next_command_works_without_corruptions() -> None:
    part = "parts:\n  - dataset: images\n    name: new-place\n    title: A new place\n"
    Path("place.yaml").write_text(f"name: place\nversion: 1\ntitle: A new place\n{part}", encoding="utf-8")
    code, out, errors = run(*TOY, "--suite", "place.yaml")
    assert code == 0, errors
    assert "  beaufort report kept -o report.html" in out.splitlines()
    result = CliRunner().invoke(app, ["report", "kept", "-o", "report.html"])
    assert result.exit_code == 0, result.output
    assert "A new place" in Path("report.html").read_text(encoding="utf-8")


def test_the_headline_is_that_of_the_report() -> None:
    data = json.loads(run(*TOY, *FOG, "--json")[1])
    result = CliRunner().invoke(app, ["report", "kept", "--format", "json"])
    (found,) = [one for key, one in json.loads(result.stdout)["results"].items() if "/" not in key]
    assert data["scores"][0]["metrics"]["toy"]["mean_accuracy"]["low"] == pytest.approx(found["acc_low,none"])


def test_a_log_gets_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(0, 10**6, 25))  # each look at the clock is 25 seconds later
    monkeypatch.setattr(_console, "clock", lambda: next(times))
    code, _, errors = run(*TOY, *FOG, "--config", "batch_size=2", "--engine", "local:1")
    lines = [line for line in errors.splitlines() if line.startswith("predictions: ")]
    assert code == 0
    assert len(lines) == 4  # 12 batches, of which every third is a minute after the line before
    assert lines[0].startswith("predictions: 6 of 24, 75 seconds elapsed, about 4 minutes left; toy images")
    assert lines[-1].startswith(
        "predictions: 24 of 24, 5 minutes elapsed, about 0 seconds left; toy images/fog@3"
    )


# Corruptions without a file


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "pass --suite or --corruption"),
        (("--suite", "photos", "--corruption", "fog"), "--suite and --corruption cannot be used together"),
        (("--suite", "photos", "--severity", "3"), "--severity requires --corruption"),
        (("--corruption", "fogg"), "did you mean 'fog'"),
        (("--corruption", "fog@3"), "pass severities separately"),
        (("--corruption", "fog", "--severity", "6"), "6"),
        (("--corruption", ","), "at least one"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], says: str) -> None:
    code, _, errors = run(*TOY, *arguments)
    assert (code, says in errors) == (2, True), errors


@pytest.mark.usefixtures("frost")
def test_a_suite_for_photos_of_ones_own() -> None:
    data = json.loads(run(*TOY, "--suite", "photos", "--config", "first=1", "--dry-run", "--json")[1])
    assert data["cells"] == 76
    assert "256 pixels" in data["notes"][0]


# Two models of one name


@pytest.fixture
def namesakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models called toy, the second a day younger."""
    for name, day in (("toy", "14"), ("namesake", "15")):
        dated = {**provenance(), "time": f"2026-11-{day}T20:11:12+00:00"}
        monkeypatch.setattr("beaufort.evaluation.execution.provenance", lambda dated=dated: dated)
        assert run("--model", f"python:contact_nets:{name}", *TOY[2:], *FOG)[0] == 0


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.usefixtures("namesakes")
def test_a_shared_name_means_the_newest_model() -> None:
    cells = FileStore("kept").cells().values()
    digests = {str(cell.model["digest"]).removeprefix("sha256:")[:8] for cell in cells}
    output = invoke("gate", "toy", "--store", "kept", "--require", "0").stdout
    assert shows(output, "2 models", "toy#")
    for digest in digests:
        assert f"toy#{digest}" in output
    assert "predictions of 2026-11-14 20:11:12 UTC" in output
    newest = next(iter({str(c.model["digest"]) for c in cells if dict(c.model) == _newest(cells)}))
    assert f"the newest is used: toy#{newest.removeprefix('sha256:')[:8]}" in output


def _newest(cells: Any) -> dict[str, Any]:
    """The facts of the model whose files are younger."""
    store = FileStore("kept")
    times = {
        json.dumps(dict(cell.model), sort_keys=True): origin["time"]
        for _, cell, _, origin in store.summaries()
    }
    found: dict[str, Any] = json.loads(max(times, key=lambda key: times[key]))
    return found


@pytest.mark.usefixtures("namesakes")
def test_reports_and_comparisons_say_when_each_was_made() -> None:
    output = invoke("report", "kept", "--format", "md").stdout
    assert "predictions of 2026-11-15 20:11:12 UTC" in output
    result = invoke("gate", "kept", "--require", "0")
    assert (result.exit_code, "predictions of 2026-11-15 20:11:12 UTC" in result.stderr) == (2, True)


# What a run needs


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, no mirror, no network."""
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    monkeypatch.delenv("BEAUFORT_MIRROR", raising=False)


@pytest.fixture
def frost() -> None:
    """The textures of frost; tests that need them are skipped if they are unavailable."""
    from beaufort._core.catalog import pull
    from beaufort._core.errors import AssetError

    try:
        pull("frost")
    except AssetError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("offline")
def test_missing_requirements_are_reported_before_the_first_image() -> None:
    code, _, errors = run(*TOY, "--corruption", "fog,frost", "--severity", "1")
    assert code == 2
    assert "1 requirement missing" in errors
    assert shows(errors, "frost, used by", "corruption frost")
    assert "frost1.png" in errors
    assert "beaufort data pull frost --output FOLDER" in errors
    assert not Path("kept").exists()
    models = ("--model", "absent.onnx", "--model", "demo:efficientnet-lite0")
    code, _, errors = run(*models, "--data", "mnist-test", "--corruption", "frost", "--store", "kept")
    assert code == 2
    assert "4 requirements missing" in errors
    assert "- the data: " in errors
    assert "- the model absent.onnx: " in errors
    (command,) = {part for part in errors.split("`") if part.endswith("frost")}
    assert command.startswith("beaufort data pull ")
    assert {"frost", "mnist-test", "efficientnet-lite0"} == set(command.split()[3:])


def test_stored_predictions_need_no_textures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frost: None
) -> None:
    options = (*TOY, "--corruption", "frost", "--severity", "1")
    assert run(*options)[0] == 0
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    monkeypatch.delenv("BEAUFORT_MIRROR", raising=False)
    assert run(*options)[0] == 0
    assert run(*options, "--seed", "1")[0] == 2


def test_no_room_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=100))
    code, _, errors = run(*TOY, *FOG)
    assert code == 2
    assert "960 bytes, and 100 bytes" in errors
    assert not Path("kept").exists()


def test_a_store_that_cannot_be_written_to(folder: Path) -> None:
    (folder / "file").touch()
    code, _, errors = run(*TOY[:-1], "file/kept", *FOG)
    assert code == 2
    assert "store file/kept: " in errors


def test_files_are_carried_to_a_machine_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frost: None
) -> None:
    result = invoke("data", "pull", "frost", "--output", "carried")
    assert result.exit_code == 0, result.output
    assert "frost: 5 files" in result.stdout
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    monkeypatch.setenv("BEAUFORT_MIRROR", str(tmp_path / "carried"))
    assert run(*TOY, "--corruption", "frost", "--severity", "1")[0] == 0

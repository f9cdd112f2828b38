"""The commands `beaufort check` and `beaufort ls models`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort.cli import app
from tests.commands import shows

MODULE = """
import numpy as np
def colors():
    return lambda images: images.astype(np.float32).mean(axis=(1, 2))
def unsteady():
    rng = np.random.default_rng(0)
    return lambda images: rng.normal(size=(len(images), 3)).astype(np.float32)
def broken():
    def fail(images):
        raise ValueError("no weights")
    return fail
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "check_nets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("check_nets", None)


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


KNOWN = ("--set", "classes=3", "--set", "version=1")


def test_fine() -> None:
    code, out, _ = run("check", "python:check_nets:colors", *KNOWN)
    assert code == 0
    assert out.startswith("colors: 3 classes, digest sha256:")
    assert "no problem found" in out
    assert shows(out, "value range", "channel order", "not checked")


def test_warnings_do_not_change_the_exit_code() -> None:
    code, out, _ = run("check", "python:check_nets:colors")
    assert code == 0
    assert "warning: digest:" in out


def test_problems() -> None:
    code, out, _ = run("check", "python:check_nets:unsteady", *KNOWN)
    assert code == 1
    assert "problem: deterministic:" in out
    code, out, _ = run("check", "python:check_nets:unsteady", *KNOWN, "--json")
    data = json.loads(out)
    assert code == 1
    assert data["model"]["classes"] == 3
    assert "deterministic" in {finding["check"] for finding in data["findings"]}


def test_unreadable_images_without_labels_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "broken.png").write_bytes(b"no image")
    command = ("check", "python:check_nets:colors", *KNOWN, "--data", "images")
    code, _, error = run(*command)
    assert code == 2
    assert "broken.png" in error
    for number in range(3):
        Image.new("RGB", (16, 16), (90 * number, 40, 0)).save(folder / f"{number}.png")
    code, out, error = run(*command)
    assert code == 1
    assert "colors: 3 classes" in out
    assert "1 unreadable image" in error


def test_wrong_class_count() -> None:
    code, out, _ = run("check", "python:check_nets:colors", "--set", "classes=10", "--set", "version=1")
    assert code == 1
    assert "problem: class count: " in out
    assert "3 logits" in out


def test_unusable() -> None:
    code, out, _ = run("check", "python:check_nets:broken", *KNOWN)
    assert code == 2
    assert "unusable: " in out
    code, _, errors = run("check", "absent.onnx")
    assert (code, "absent.onnx" in errors) == (2, True)
    code, _, errors = run("check", "python:check_nets:colors", "--set", "clases=3")
    assert code == 2
    assert "did you mean 'classes'" in errors


def test_labeled_images_check_the_channel_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    images = rng.integers(0, 120, (60, 16, 16, 3)).astype(np.uint8)
    images[np.arange(60), ..., labels] += 100
    np.savez(tmp_path / "samples.npz", images=images, labels=labels)
    code, out, _ = run("check", "python:check_nets:colors", *KNOWN, "--data", "samples.npz")
    assert (code, "not checked" in out) == (0, False)
    arguments = [*KNOWN, "--set", "order=BGR", "--data", "samples.npz"]
    code, out, _ = run("check", "python:check_nets:colors", *arguments)
    assert code == 1
    assert "problem: channel order: " in out
    assert "60 images" in out
    assert "load it with order=RGB" in out


def test_ls_models() -> None:
    code, out, _ = run("ls", "models")
    assert code == 0
    for kind in ("onnx", "python", "torch", "timm", "torchvision", "transformers", "open_clip", "http"):
        assert f"\n{kind} " in out
    code, out, _ = run("ls", "models", "--json")
    data = json.loads(out)
    assert {"kind", "needs", "installed", "install", "example", "summary"} == set(data["kinds"][0])
    assert isinstance(data["names"], dict)


def color_samples(path: Path, names: tuple[str, ...], count: int = 30) -> None:
    """Write images whose brightest channel is the index of their class."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for place, name in enumerate(names):
        (path / name).mkdir(parents=True)
        for i in range(count):
            pixels = rng.integers(0, 120, (16, 16, 3)).astype(np.uint8)
            pixels[..., place] += 100
            Image.fromarray(pixels).save(path / name / f"{i}.png")


def test_accuracy_is_printed(tmp_path: Path) -> None:
    color_samples(tmp_path / "data", ("a", "b", "c"))
    code, out, _ = run("check", "python:check_nets:colors", *KNOWN, "--data", "data")
    assert code == 0
    assert shows(out, "90 images", "100.0%", "33.3%", "numbers of outputs")
    code, out, _ = run("check", "python:check_nets:colors", *KNOWN, "--data", "data", "--json")
    assert json.loads(out)["accuracy"]["value"] == 1


def test_a_wrong_class_order_is_found(tmp_path: Path) -> None:
    """Neither range nor BGR is blamed."""
    color_samples(tmp_path / "data", ("red", "green", "blue"))  # sorted, these are 2, 1 and 0
    order = Path("order.txt")
    order.write_text("green\nred\nblue\n")
    code, out, _ = run("check", "python:check_nets:colors", *KNOWN[2:], "--classes", order, "--data", "data")
    assert code == 1
    order.write_text("green\nblue\nred\n")
    code, out, _ = run("check", "python:check_nets:colors", *KNOWN[2:], "--classes", order, "--data", "data")
    assert code == 1
    assert "problem: class order: " in out
    assert shows(out, "90 images", "0.0%", "no better", "chance", "33.3%")
    assert "100.0%" in out
    assert "--classes FILE" in out
    assert "range" not in out.split("problem:")[1]
    order.write_text("red\ngreen\nblue\n")
    code, out, _ = run("check", "python:check_nets:colors", *KNOWN[2:], "--classes", order, "--data", "data")
    assert (code, "100.0%; chance" in out) == (0, True)


def test_accuracy_at_chance_without_a_visible_reason(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 16, 16, 3)).astype(np.uint8)
    np.savez(tmp_path / "samples.npz", images=images, labels=rng.integers(0, 3, 60))
    code, out, _ = run("check", "python:check_nets:colors", *KNOWN, "--data", "samples.npz")
    assert code == 1
    assert "problem: accuracy:" in out
    reasons = out.split("likely reasons")[1]
    places = [reasons.index(word) for word in ("order of classes", "range", "BGR", "mean and std")]
    assert places == sorted(places)


def test_unreadable_images_are_listed(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(3):
            color = tuple(200 if name == "abc"[i] else 20 for i in range(3))
            Image.new("RGB", (32, 32), color).save(tmp_path / "data" / name / f"{number}.png")
    command = ("check", "python:check_nets:colors", *KNOWN, "--data", "data", "--labels", "identity")
    code, out, error = run(*command)
    assert (code, error) == (0, ""), out
    (tmp_path / "data" / "a" / "notes.txt").write_text("not an image")
    assert run(*command) == (0, out, "")
    (tmp_path / "data" / "a" / "1.png").write_bytes(b"no image")
    code, out, error = run(*command)
    assert code == 1
    assert "problem: a/1.png: " in error
    assert "no problem" not in out
    assert "1 unreadable image" in error
    assert [one["id"] for one in json.loads(run(*command, "--json")[1])["problems"]] == ["a/1.png"]


def test_more_classes_than_outputs(tmp_path: Path) -> None:
    for name in "abcde":
        (tmp_path / "five" / name).mkdir(parents=True)
        Image.new("RGB", (32, 32), "orange").save(tmp_path / "five" / name / "1.png")
    code, _, output = run("check", "python:check_nets:colors", "--data", "five")
    assert code == 2
    assert "3 outputs of colors" in output

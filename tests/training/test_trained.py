"""A trained network is evaluated by name, as a torch module and as an ONNX file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.cli._app import app
from beaufort.evaluation import LazyModel
from beaufort.models import load_model
from beaufort.results import evaluate
from beaufort.studies.leave_out import leave_out
from beaufort.testing import check_model
from beaufort.training import (
    Recipe,
    TrainingFileError,
    TrainingTensors,
    find_trained,
    get_recipe,
    load_trained,
    train,
)
from beaufort.training.trained import FACTS, NETWORK


@pytest.fixture
def folder(patches: TrainingTensors, quick: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BEAUFORT_TRAINED", str(tmp_path))
    train(quick, patches, output=tmp_path / "quick-seed0", device="cpu")
    return tmp_path / "quick-seed0"


def pixels(patches: TrainingTensors) -> np.ndarray:
    return np.asarray(patches.images.permute(0, 2, 3, 1)[:50])


def test_by_name(folder: Path, patches: TrainingTensors) -> None:
    model = load_model("trained:quick-seed0", device="cpu")
    assert (model.spec.name, model.spec.classes) == ("quick-seed0", 10)
    assert not check_model(model)
    labels = patches.labels.numpy()[:50]
    assert (model(pixels(patches)).argmax(1) == labels).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "chosen"), [("front", "clahe:tiles=2"), ("image_filter", ["stretch", "clahe:tiles=2"])]
)
def test_a_missing_filter_of_the_training_run_is_reported(
    name: str, chosen: str | list[str], folder: Path, patches: TrainingTensors
) -> None:
    """Runs and checks without the filter of the training run have a note; `front` is its earlier name."""
    file = folder / FACTS
    facts = json.loads(file.read_bytes())
    facts["recipe"] |= {"intervention": name, "intervention_options": {name: chosen}}
    digest = load_model("trained:quick-seed0", device="cpu").spec.digest
    file.write_text(json.dumps(facts))
    assert load_model("trained:quick-seed0", device="cpu").spec.digest == digest
    data = (pixels(patches)[:4], patches.labels.numpy()[:4])
    filters = " and ".join([chosen] if isinstance(chosen, str) else chosen)
    for given, how in (
        (None, "without an image filter"),
        ("nlm", "with another image filter"),
        (chosen, ""),
    ):
        model = LazyModel("trained:quick-seed0", {"device": "cpu", **({"filter": given} if given else {})})
        notes = evaluate(model, ["contrast"], data).notes
        each = [given] if isinstance(given, str) else given or []
        options = [part for text in each for part in ("--filter", text)]
        checked = CliRunner().invoke(app, ["check", "trained:quick-seed0", "--json", *options])
        assert json.loads(checked.stdout)["notes"] == list(notes)
        assert [how in note and f"trained with the image filter {filters} and" in note for note in notes] == (
            [True] if how else []
        )
        assert checked.stderr.count("note: ") == len(notes)


def test_the_working_folder_has_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert load_model("trained:.", device="cpu").spec.name == "quick-seed0"


def test_onnx_gives_the_same_predictions(folder: Path, patches: TrainingTensors) -> None:
    ours = load_model(f"trained:{folder}", device="cpu")(pixels(patches))
    theirs = load_model(str(folder / NETWORK))(pixels(patches))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("size", [(28, 28), (28, 56), (40, 21), (14, 14)])
def test_onnx_predicts_alike_for_images_of_any_size(folder: Path, size: tuple[int, int]) -> None:
    images = np.random.default_rng(0).integers(0, 256, (8, *size, 3), np.uint8)
    ours, theirs = load_model(f"trained:{folder}", device="cpu"), load_model(str(folder / NETWORK))
    assert ours.spec.preprocessing == theirs.spec.preprocessing
    assert ours.spec.class_names == theirs.spec.class_names == tuple("0123456789")
    np.testing.assert_allclose(ours(images), theirs(images), atol=1e-4)


def test_the_onnx_file_is_sound(folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    onnx.checker.check_model(folder / NETWORK, full_check=True)


@pytest.mark.parametrize("name", ["cifar10-tuned", "conv1-tuned"])
def test_fine_tuning_needs_a_trained_network(name: str, patches: TrainingTensors, tmp_path: Path) -> None:
    message = "--set start="
    with pytest.raises(OptionError, match=message):
        train(name, patches, output=tmp_path / "python", device="cpu")
    pruning = ["--set", "intervention=pruning", "--set", "intervention_options.share=0.5"]
    for requested in ([name], ["conv1", *pruning], [name, "--set", "start=", *pruning]):
        result = CliRunner().invoke(
            app, ["train", *requested, "-o", str(tmp_path / "command"), "--data", "nowhere"]
        )
        assert (result.exit_code, message in result.output) == (2, True)
    pruned = replace(get_recipe("conv1"), intervention="pruning", intervention_options={"fraction": 0.5})
    with pytest.raises(OptionError, match=message):
        train(pruned, patches, output=tmp_path / "python", device="cpu")
    with pytest.raises(OptionError, match=message):
        leave_out("nowhere", "camera", recipe=name, output=tmp_path / "page")
    assert not list(tmp_path.iterdir())


def test_unfinished_training_runs_are_reported(folder: Path, patches: TrainingTensors, quick: Recipe) -> None:
    """The error states that the run is not finished."""
    train(quick, patches, output=folder.parent / "half-seed0", device="cpu", deadline=0.0)
    with pytest.raises(UnknownNameError, match=r"half-seed0.* not finished"):
        load_model("trained:half-seed0", device="cpu")


def test_missing_and_invalid_files(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="mean 'quick-seed0'"):
        find_trained("quick-seed1")
    facts = json.loads((folder / FACTS).read_text())
    (folder / FACTS).write_text(json.dumps({**facts, "recipe": {**facts["recipe"], "architecture": "conv3"}}))
    with pytest.raises((TrainingFileError, ValueError)):
        load_trained(folder)
    (folder / FACTS).write_text("{}")
    with pytest.raises(TrainingFileError, match="must contain recipe"):
        load_trained(folder)
    (folder / FACTS).write_text("[" * 100_000)
    with pytest.raises(TrainingFileError, match="JSON"):
        load_trained(folder)
    for key, value, message in (
        ("recipe", 5, "must contain recipe"),
        ("classes", 5, "classes"),
        ("shape", [28], "shape"),
        ("shape", ["a", 2, 3], "shape"),
        ("shape", None, "shape"),
    ):
        (folder / FACTS).write_text(json.dumps({**facts, key: value}))
        with pytest.raises(TrainingFileError, match=message):
            load_model(f"trained:{folder}", device="cpu")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from beaufort.cli import app

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("a.npz", images=rng.integers(0, 255, (64, 28, 28, 1), np.uint8), labels=np.arange(64) % 10)
    small = 'architecture_options={"first": 2, "second": 3, "hidden": 4}'
    command = ["train", "conv1", "--data", "a.npz", "--set", "epochs=1", "--set", small, "--device", "cpu"]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["steps"] == 1
    assert (tmp_path / "trained" / "conv1-seed0" / NETWORK).is_file()
    again = CliRunner().invoke(app, command)
    assert ": 1 step in " in again.stdout
    listed = CliRunner().invoke(app, ["train"])
    assert "conv2-pgd" in listed.stdout
    wrong = CliRunner().invoke(app, ["train", "conv1", "--set", "epoch=1"])
    assert wrong.exit_code == 2


def test_the_command_takes_images_of_any_sizes_as_squares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image
    from typer.testing import CliRunner

    from beaufort.cli import app

    monkeypatch.chdir(tmp_path)
    for name, size in (("cat", (40, 30)), ("dog", (20, 50))):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.new("RGB", size).save(tmp_path / "photos" / name / "1.png")
    small = 'architecture_options={"depth": 8, "width": 4}'
    command = ["train", "cifar10-resnet20", "--data", "photos", "--device", "cpu", "--json"]
    command += ["--set", "epochs=1", "--set", "batch=2", "--set", small]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "--side" in result.output
    done = CliRunner().invoke(app, [*command, "--side", "16"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["shape"] == [3, 16, 16]


def test_code_is_run_only_if_the_caller_names_it(folder: Path, tmp_path: Path) -> None:
    """A downloaded folder must not decide which code runs."""
    facts = json.loads((folder / FACTS).read_text())
    trap = {
        "architecture": "python:os:system",
        "architecture_options": {"command": f"touch {tmp_path}/sprung"},
    }
    (folder / FACTS).write_text(json.dumps({**facts, "recipe": {**facts["recipe"], **trap}}))
    with pytest.raises(OptionError, match="python:os:system"):
        load_model(f"trained:{folder}", device="cpu")
    assert not (tmp_path / "sprung").exists()


def test_a_network_of_your_own(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    arch = "python:beaufort.training.architectures.digits:conv1"
    train(replace(quick, architecture=arch, epochs=1), patches, output=tmp_path, device="cpu")
    assert load_model(f"trained:{tmp_path}", device="cpu", arch=arch).spec.classes == 10
    with pytest.raises(OptionError, match="arch must be"):
        load_model(f"trained:{tmp_path}", device="cpu")

"""Label spaces from a folder and a model to numbers, and to other numbers without the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

from beaufort.cli._app import app
from beaufort.data import Dataset, from_arrays, load_dataset
from beaufort.data.labels import LabelError, LabelSets, class_ids, class_names
from beaufort.evaluation import RunOptions, plan
from beaufort.models import Model, as_model
from beaufort.report import to_text
from beaufort.results import ResultsError, evaluate, join_results, open_results, score
from beaufort.store import FileStore
from beaufort.suites import Suite, get_suite
from tests.commands import shows

SUITE = Suite(
    name="small", version=1, dataset="photos", scale="cifar", corruptions=("contrast",), severities=(1, 5)
)
LABELS = (0, 207, 985)
IDS = [class_ids("imagenet-1k")[label] for label in LABELS]


def thousand(
    name: str = "thousand", classes: int = 1000, shift: float = 0.0, calls: list[int] | None = None
) -> Model:
    """Predict the class by the red value, 10 times the index in `LABELS`; output 500 is slightly larger."""

    def predict(images: np.ndarray) -> np.ndarray:
        if calls is not None:
            calls.append(len(images))
        logits = np.zeros((len(images), classes), np.float32)
        red = np.rint(images[:, 8, 8, 0] / 100).astype(int).clip(0, 2)
        logits[np.arange(len(images)), np.array(LABELS)[red]] = 5
        logits[:, 500] = 5 + shift
        return logits

    return as_model(predict, name=name, classes=classes, version=f"{classes} {shift}")


def photos(root: Path, names: list[str], count: int = 4) -> Dataset:
    rng = np.random.default_rng(0)
    for label, name in enumerate(names):
        (root / name).mkdir(parents=True)
        for i in range(count):
            pixels = rng.integers(0, 40, (32, 32, 3)).astype(np.uint8)
            pixels[..., 0] = 100 * label
            Image.fromarray(pixels).save(root / name / f"{i}.png")
    return load_dataset(str(root))


def test_folders_of_wnids_are_mapped(tmp_path: Path) -> None:
    """Labels 0, 1 and 2 of three folders are not the first three of a thousand classes."""
    data = photos(tmp_path / "photos", IDS)
    found = evaluate([thousand()], SUITE, data, tmp_path / "store")
    assert found.results[0].accuracy == 1
    message = "3 classes, from 3 of 1,000 outputs; only these compete (convention restricted)"
    assert {result.labels for result in found.results} == {message}
    names = [class_names("imagenet-1k")[label].replace(" ", "_").upper() for label in LABELS]
    named = evaluate([thousand()], SUITE, photos(tmp_path / "named", names), tmp_path / "other")
    order = np.argsort(names)
    assert named.results[0].accuracy == 1
    assert order.tolist() != [0, 1, 2]


def test_conventions_are_two_results_of_one_store(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos", IDS)
    calls: list[int] = []
    model = thousand(shift=1, calls=calls)
    store = tmp_path / "store"
    restricted = evaluate([model], SUITE, data, store)
    every = evaluate([model], SUITE, data, store, options=RunOptions(convention="all"))
    assert (restricted.results[0].accuracy, every.results[0].accuracy) == (1, 0)
    assert restricted.results[0].fingerprint != every.results[0].fingerprint
    done = sum(calls)
    again = evaluate([model], SUITE, data, store, options=RunOptions(convention="restricted"))
    assert (sum(calls), again.results[0].accuracy) == (done, 1)
    for convention, accuracy in (("all", 0), ("restricted", 1)):
        scores = score(open_results(store, convention=convention))
        assert scores.models[0].clean is not None
        assert scores.models[0].clean.value == accuracy
        assert any(f"(convention {convention})" in note for note in scores.notes)
        for kind in ("md", "latex", "html", "card"):
            assert f"convention {convention}" in to_text(scores, kind)
        assert json.loads(to_text(scores, "json"))["config"]["labels"]["convention"] == convention
        assert to_text(scores, "csv").splitlines()[1].endswith(f",{convention},photos")


def test_a_stored_run_is_scored_again_without_the_model(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos", IDS)
    store = tmp_path / "store"
    evaluate([thousand(shift=1)], SUITE, data, store, options=RunOptions(keep_logits=True))
    grouping: dict[str, list[int | str]] = {IDS[0]: ["tench", 500], IDS[1]: [207], IDS[2]: [985]}
    fresh = evaluate([thousand(shift=1)], SUITE, data, tmp_path / "fresh", labels=grouping)
    ways: list[tuple[dict[str, Any], float]] = [({"convention": "all"}, 0.0), ({"labels": grouping}, 1 / 3)]
    for options, accuracy in ways:
        results = open_results(store, **options)
        predictions = results.predictions("thousand")
        assert predictions.correct[0].mean() == accuracy
        assert score(results).models[0].clean.value == accuracy  # type: ignore[union-attr]
    assert fresh.results[0].accuracy == 1 / 3
    stored = open_results(tmp_path / "fresh").predictions("thousand")
    assert np.array_equal(stored.top, predictions.top)
    assert np.allclose(stored.nll, predictions.nll, atol=1e-2)


def test_rescoring_requires_logits(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos", IDS)
    evaluate([thousand()], SUITE, data, tmp_path / "store")
    results = open_results(tmp_path / "store", convention="all")
    with pytest.raises(ResultsError, match="keep_logits"):
        results.predictions("thousand")
    with pytest.raises(LabelError, match="convention must be"):
        open_results(tmp_path / "store", convention="some")


def test_sets_of_labels(tmp_path: Path) -> None:
    """ReaL: any label of a set is right, and images with none are left out and counted."""
    images = np.zeros((4, 32, 32, 3), np.uint8)
    images[:, ..., 0] = np.array([0, 100, 200, 0])[:, None, None]
    data = from_arrays("photos", images, np.array([0, 0, 0, 0]))
    sets = LabelSets("real", ((0, 5), (3, 207), (3,), ()))
    model = thousand(shift=-1)
    plain = evaluate([model], SUITE, data, tmp_path / "plain", options=RunOptions(keep_logits=True))
    found = evaluate([model], SUITE, data, tmp_path / "store", options=RunOptions(label_sets=sets))
    assert "labels" not in FileStore(tmp_path / "plain").cells()[plain.results[0].fingerprint].data
    first = found.results[0]
    assert (first.images, first.correct, first.unlabeled, first.unread) == (3, 2, 1, 0)
    table = FileStore(tmp_path / "store").read(FileStore(tmp_path / "store").cells()[first.fingerprint])
    assert table["label_set"].to_pylist() == [[0, 5], [3, 207], [3, -1], [-1, -1]]
    assert not FileStore(tmp_path / "store").verify()
    for results in (open_results(tmp_path / "store"), open_results(tmp_path / "plain", label_sets=sets)):
        scores = score(results)
        assert scores.models[0].clean is not None
        assert scores.models[0].clean.value == 2 / 3
        assert "1 images without" in " ".join(scores.notes)
        assert results.predictions("thousand").unlabeled == 1


def test_numbers_given_by_a_user_are_outputs_and_change_no_fingerprint(tmp_path: Path) -> None:
    images = np.zeros((6, 32, 32, 3), np.uint8)
    data = from_arrays("photos", images, np.array([0, 1, 2, 0, 1, 2]))
    (work, *_) = plan([thousand()], SUITE, data, tmp_path).cells
    assert work.space.identity
    assert set(work.cell.data) == {"name", "digest"}


def test_models_with_different_outputs_side_by_side(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos", IDS)
    few = as_model(three, name="few", classes=3, version="1")
    evaluate([few, thousand(shift=1)], SUITE, data, tmp_path / "store")
    results = open_results(tmp_path / "store")
    assert results.models == ("few", "thousand")
    assert results.class_count == 3
    assert [results.predictions(name).correct[0].all() for name in results.models] == [True, True]


def three(images: np.ndarray) -> np.ndarray:
    red = np.rint(images[:, 8, 8, 0] / 100).astype(int).clip(0, 2)
    return np.asarray(np.eye(3, dtype=np.float32)[red])


def test_stores_that_are_scored_alike_are_compared(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos", IDS)
    few = as_model(three, name="few", classes=3, version="1")
    evaluate([few], SUITE, data, tmp_path / "few")
    evaluate([thousand()], SUITE, data, tmp_path / "restricted")
    evaluate([thousand()], SUITE, data, tmp_path / "all", options=RunOptions(convention="all"))
    opened = {name: open_results(tmp_path / name) for name in ("few", "restricted", "all")}
    assert join_results([opened["few"], opened["restricted"]]).models == ("few", "thousand")
    for first in ("few", "restricted"):
        with pytest.raises(ResultsError, match="3 classes, from 3 of 1,000 outputs"):
            join_results([opened[first], opened["all"]])


def test_published_baselines_need_their_number_of_classes(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos", IDS, count=2)
    suite = Suite(
        name="small",
        version=1,
        dataset="photos",
        scale="cifar",
        corruptions=("contrast",),
        severities=(1, 5),
        baseline="alexnet",
        metrics=("mce",),
    )
    evaluate([thousand()], suite, data, tmp_path / "store")
    scores = score(open_results(tmp_path / "store"))
    assert scores.baseline is None
    notes = " ".join(scores.notes)
    assert "alexnet" in notes
    assert "1,000" in notes


def test_a_limit_takes_classes_in_turns(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos", IDS, count=5)
    found = evaluate([thousand()], SUITE, data, tmp_path / "store", limit=6)
    assert any(shows(n, "6 of 15 images", "balanced", "seed 0") for n in found.notes)
    rows = FileStore(tmp_path / "store").read(
        FileStore(tmp_path / "store").cells()[found.results[0].fingerprint]
    )
    assert np.bincount(rows["label"].to_numpy()).tolist() == [2, 2, 2]
    assert open_results(tmp_path / "store").setting.order == "spread 0"
    first = evaluate([thousand()], SUITE, data, tmp_path / "store", options=RunOptions(first=6))
    assert not any("balanced" in note for note in first.notes)
    assert first.results[0].fingerprint != found.results[0].fingerprint
    more = evaluate([thousand()], SUITE, data, tmp_path / "store", limit=9)
    assert more.results[0].fingerprint == found.results[0].fingerprint
    whole = data.balanced(0)
    assert sorted(whole.ids) == sorted(data.ids)
    assert whole.digest() == data.digest()
    for count in range(1, 16):
        counts = np.bincount(whole.labels[:count], minlength=3)
        assert counts.max() - counts.min() <= 1


def test_suites_know_their_classes() -> None:
    assert get_suite("imagenet-c").label_space == "imagenet-1k"
    assert "label_space" not in get_suite("imagenet-c").as_dict()
    assert SUITE.label_space is None


MODULE = """
import numpy as np
from beaufort.models import as_model
def thousand():
    def predict(images):
        logits = np.zeros((len(images), 1000), np.float32)
        red = np.rint(images[:, 8, 8, 0] / 100).astype(int).clip(0, 2)
        logits[np.arange(len(images)), np.array([0, 207, 985])[red]] = 5
        return logits
    return as_model(predict, name="thousand", classes=1000, version="1")
"""


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos(tmp_path / "photos", IDS)
    photos(tmp_path / "pets", ["cat", "dog", "hen"])
    (tmp_path / "label_nets.py").write_text(MODULE)
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nversion: 1\ndataset: photos\nscale: cifar\ncorruptions: [contrast]\nseverities: [1]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    command = ["run", "--model", "python:label_nets:thousand", "--suite", "mine.yaml", "--data"]
    ran = CliRunner().invoke(app, [*command, "photos", "--config", "keep_logits=true"])
    assert ran.exit_code == 0, ran.output
    assert "3 of 1,000 outputs" in ran.output
    result = CliRunner().invoke(app, [*command, "pets"])
    assert result.exit_code == 2
    assert "pass --classes FILE" in result.output
    outcome = CliRunner().invoke(app, ["report", "results", "--format", "md", "--labels", "convention=all"])
    assert "every output competes" in outcome.output
    (tmp_path / "names.json").write_text(json.dumps({name: ["no fish"] for name in IDS}))
    outcome = CliRunner().invoke(app, ["report", "results", "--format", "md", "--labels", "names.json"])
    assert outcome.exit_code == 2
    assert "3 outputs" in outcome.output
    assert "'no fish'" in outcome.output
    (tmp_path / "pets.json").write_text(json.dumps({"cat": [0], "dog": [207], "hen": [985]}))
    ran = CliRunner().invoke(app, [*command, "pets", "--labels", "pets.json", "--json", "--store", "other"])
    assert json.loads(ran.stdout)["results"][0]["accuracy"] == 1


def test_last_run_defines_the_scoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One model on one dataset, scored in three ways in one store."""
    data = photos(tmp_path / "photos", IDS)
    ways: list[tuple[dict[str, Any], str]] = [
        ({"labels": "identity"}, ""),
        ({}, "restricted"),
        ({"options": RunOptions(convention="all")}, "all"),
    ]
    for minute, (options, word) in enumerate([*ways, *ways]):
        time = f"2026-01-01T00:{minute:02}:00"
        monkeypatch.setattr("beaufort.evaluation.execution.provenance", lambda time=time: {"time": time})
        found = evaluate([thousand(shift=1)], SUITE, data, tmp_path / "store", **options)
        results = open_results(tmp_path / "store")
        assert results.setting.scored.convention == word
        assert results.models == ("thousand",)
        assert results.predictions("thousand").correct[0].mean() == found.results[0].accuracy
    assert open_results(tmp_path / "store", convention="restricted").predictions("thousand").correct[0].all()


def test_probabilities_are_noticed_in_any_space(tmp_path: Path) -> None:
    def fractions(images: np.ndarray) -> np.ndarray:
        return np.full((len(images), 1000), 0.001, np.float32)

    model = as_model(fractions, name="shares", classes=1000, version="1")
    found = evaluate([model], SUITE, photos(tmp_path / "photos", IDS), tmp_path / "store")
    assert shows(" ".join(found.notes), "shares", "probabilities")


def test_classes_without_outputs_are_wrong_and_unread_images_stay_apart(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos", ["fish", "hen", "dog"])
    (tmp_path / "photos" / "dog" / "0.png").write_bytes(b"no image")
    grouping = {"dog": [0], "fish": [207], "hen": []}
    found = evaluate(
        [thousand()], SUITE, data, tmp_path / "store", labels=grouping, options=RunOptions(keep_logits=True)
    )
    assert (found.results[0].images, found.results[0].unread) == (11, 1)
    anew = open_results(tmp_path / "store", convention="all").predictions("thousand")
    stored = open_results(tmp_path / "store").predictions("thousand")
    for outputs in (anew, stored):
        assert (len(outputs), outputs.unread) == (11, 1)
        assert not outputs.correct[0][outputs.labels == 2].any()


def test_outputs_of_a_function_are_counted_by_default(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (32, 32), "orange").save(tmp_path / "photos" / name / "1.png")
    uncounted = as_model(lambda shown: np.zeros((len(shown), 3), np.float32), name="uncounted", version="1")
    with pytest.raises(LabelError, match="with 3 outputs of uncounted"):
        evaluate(uncounted, SUITE, tmp_path / "photos", tmp_path / "store")
    beyond = from_arrays("photos", np.zeros((4, 32, 32, 3), np.uint8), np.arange(4))
    with pytest.raises(LabelError, match=r"3.* outputs of uncounted"):
        evaluate(uncounted, SUITE, beyond, tmp_path / "store")
    found = evaluate(uncounted, SUITE, beyond.select(np.arange(3)), tmp_path / "store")
    assert found.scores(calibration=False).results.class_count == 3
    counted = as_model(uncounted.forward, name="uncounted", classes=3, version="1")  # type: ignore[attr-defined]
    again = evaluate(counted, SUITE, beyond.select(np.arange(3)), tmp_path / "store")
    assert all(result.reused for result in again.results)


def test_outputs_that_a_run_has_counted_are_not_counted_again(tmp_path: Path) -> None:
    shown: list[int] = []

    def predict(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        shown.append(len(images))
        return np.zeros((len(images), 3), np.float32)

    data = from_arrays("photos", np.zeros((4, 32, 32, 3), np.uint8), np.arange(4) % 3)
    first = evaluate(as_model(predict, name="net", version="1"), SUITE, data, tmp_path / "store")
    assert shown.pop(0) == 1
    shown.clear()
    again = evaluate(as_model(predict, name="net", version="1"), SUITE, data, tmp_path / "store")
    assert not shown
    assert [one.correct for one in again.results] == [one.correct for one in first.results]
    assert again.scores(calibration=False).results.class_count == 3
    for record in (tmp_path / "store" / "runs").iterdir():
        record.write_text("damaged")
    evaluate(as_model(predict, name="net", version="1"), SUITE, data, tmp_path / "store")
    assert shown == [1]

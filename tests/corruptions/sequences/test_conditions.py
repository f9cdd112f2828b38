"""Frames of sequences as conditions of a run: made together, stored one by one, read back as numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort._core.errors import BeaufortError, ImageFileError, OptionError
from beaufort.corruptions.sequences import SIDES, perturbations, sequences
from beaufort.data import Dataset, from_arrays
from beaufort.data.writers import make_dataset
from beaufort.evaluation import RunOptions
from beaufort.evaluation.tasks import TaskPart, by_sequence
from beaufort.metrics import flips, mean_flip_rate, top5_distances
from beaufort.models import Model, as_model
from beaufort.results import Predictions, Run, Scores, evaluate, open_results
from beaufort.store import FileStore
from beaufort.suites import Suite, SuiteError, get_suite
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import frame_shifts
from beaufort.testing._contracts import example_image
from tests.commands import invoke

SUITE = Suite(
    name="frame_batches",
    version=1,
    dataset="toys",
    scale="cifar",
    sequences=("gaussian_noise", "rotate", "spatter", "translate"),
    metrics=("flip_probability", "top5_distance"),
)
COUNT = 12
IMAGES = np.stack([example_image(32, 32, variant=i) for i in range(COUNT)])
LABELS = np.arange(COUNT) % 6
CLASSES = tuple(f"class{i}" for i in range(6))


def toy(seed: int = 3, name: str = "toy", classes: int = 6) -> Model:
    weights = np.random.default_rng(seed).normal(0, 1, (classes, 16 * 3)).astype(np.float32)

    def predict(images: np.ndarray) -> np.ndarray:
        few = images[:, ::8, ::8].reshape(len(images), -1).astype(np.float32)  # so that noise matters
        return np.asarray(few @ weights.T / 99, np.float32)

    return as_model(predict, name=name, classes=classes, version=str(seed))


@pytest.fixture(scope="module")
def data() -> Dataset:
    return from_arrays("toys", IMAGES, LABELS, classes=CLASSES)


@pytest.fixture(scope="module")
def done(data: Dataset) -> Run:
    """Both models on all sequences, in memory."""
    return evaluate([toy(), toy(4, "other")], SUITE, data, labels="identity", engine="local:2")


@pytest.fixture(scope="module")
def scores(done: Run) -> Scores:
    return done.scores(calibration=False)


def top_classes(name: str, data: Dataset, model: Model, difficulty: int = 1) -> np.ndarray:
    """Return the five best classes of each frame without `evaluate`, `(images, frames, 5)`."""
    made = perturbations[name].frames(
        IMAGES, scale="cifar", ids=list(data.ids), seed=0, difficulty=difficulty
    )
    logits = np.stack([model(np.asarray(frame)) for frame in made], axis=1)
    return np.asarray(np.argsort(-logits, axis=-1, kind="stable")[..., :5])


def test_numbers_are_those_of_the_frames(data: Dataset, scores: Scores) -> None:
    by_name = {one.model: one for one in scores.models}
    for model in (toy(), toy(4, "other")):
        moved = by_name[model.spec.name].movement
        values: dict[str, list[float]] = {"flip_probability": [], "top5_distance": []}
        for name in SUITE.sequences:
            top = top_classes(name, data, model)
            against: Any = "first" if perturbations[name].noise else "previous"
            wanted = flips(top[..., 0], against=against), top5_distances(top, against=against)
            for (kind, found), fraction in zip(values.items(), wanted, strict=True):
                found.append(fraction.mean())
                one = moved[kind][name]
                assert one.value == pytest.approx(fraction.mean())
                assert one.low < one.value < one.high or fraction.mean() == 0 == one.low < one.high
                assert one.n == COUNT
        for kind, found in values.items():
            assert by_name[model.spec.name].metrics[kind].value == pytest.approx(np.mean(found))
    assert scores.headline == "flip_probability"
    assert scores.models[0].clean is not None


def test_rates_are_relative_to_a_named_model(done: Run, scores: Scores, monkeypatch: Any) -> None:
    monkeypatch.setattr("beaufort.results.metric_forms.FEWEST", 1)
    relative = done.scores(baseline="other", calibration=False)
    toys, other = ({one.model: one for one in relative.models}[name] for name in ("toy", "other"))
    for kind, rate in (("flip_probability", "mfr"), ("top5_distance", "mt5d")):
        ours, theirs = ({n: e.value for n, e in one.movement[kind].items()} for one in (toys, other))
        assert toys.metrics[rate].value == pytest.approx(mean_flip_rate(ours, theirs))
        assert other.metrics[rate].exact
        assert relative.metric_title(rate).endswith("vs other")
    assert "mfr" not in scores.models[0].metrics


def test_a_baseline_that_hardly_moves_does_not_divide(done: Run) -> None:
    found = done.scores(baseline="other", calibration=False)
    assert "mfr" not in found.models[0].metrics
    assert any("mFR is not shown" in note and "change on 8 of 12 images" in note for note in found.notes)


def test_rates_relative_to_a_file(done: Run, tmp_path: Path) -> None:
    file = tmp_path / "paper.csv"
    rows = "".join(f"{name},0.{i + 1}\n" for i, name in enumerate((*SUITE.sequences, "snow")))
    file.write_text(f"sequence,flip_probability\n{rows}")
    found = done.scores(baseline=str(file), calibration=False)
    one = found.models[0]
    values = {name: estimate.value for name, estimate in one.movement["flip_probability"].items()}
    wanted = mean_flip_rate(values, {name: (i + 1) / 10 for i, name in enumerate(SUITE.sequences)})
    assert one.metrics["mfr"].value == pytest.approx(wanted)
    assert found.metric_title("mfr") == "mFR vs paper"
    assert "mt5d" not in one.metrics
    assert next(iter(one.metrics)) == "flip_probability"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sequence,flip_probability\nrotate,0.1\n", "gaussian_noise, spatter, translate"),
        ("sequence,flips\nrotate,0.1\n", "no column flip_probability or top5_distance"),
        ("sequence,flip_probability\nrotate,0\n", r"above 0 .*at most 1.* '0'"),
        ("sequence,flip_probability\nrotate,nan\n", r"above 0 .*at most 1.* 'nan'"),
        ("sequence,flip_probability\nrotate,0.1\nrotate,0.2\n", "'rotate'"),
        ("sequence,flip_probability\nrotate\n", "line 2: 1 fields"),
    ],
)
def test_rejected_files(done: Run, tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "wrong.csv"
    file.write_text(text)
    with pytest.raises(OptionError, match=says):
        done.scores(baseline=str(file), calibration=False)


def test_no_published_baseline_is_invented(done: Run) -> None:
    with pytest.raises(BeaufortError, match="'alexnet'"):
        done.scores(baseline="alexnet", calibration=False)


def test_interrupted_run_resumes(data: Dataset, tmp_path: Path) -> None:
    """A run with lost frames and more images gives the same predictions as one complete run."""
    suite = Suite.from_dict({**SUITE.as_dict(), "name": "two", "sequences": ["translate", "spatter"]})
    evaluate(toy(), suite, data, tmp_path, labels="identity", options=RunOptions(first=5))
    half = FileStore(tmp_path)
    listing = half.listing()
    for cell in list(half.cells().values())[3:40:5]:
        for piece in listing[cell.fingerprint]:
            (tmp_path / piece.path).unlink()
    again = evaluate(toy(), suite, data, tmp_path, labels="identity", options=RunOptions(batch_size=5))
    assert not any(result.reused for result in again.results)
    once = evaluate(toy(), suite, data, labels="identity")
    one, other = (_predictions(found) for found in (once, again))
    assert other.conditions == one.conditions
    assert np.array_equal(other.top, one.top)
    assert np.allclose(
        other.nll, one.nll, rtol=1e-4
    )  # products of matrices of another size round differently
    assert open_results(tmp_path).models == ("toy",)
    assert all(result.reused for result in evaluate(toy(), suite, data, tmp_path, labels="identity").results)


def _predictions(found: Run) -> Predictions:
    return found.predictions[0].predictions("toy")


def test_frames_of_one_sequence_stay_together() -> None:
    texts = ["x", *(f"x/{one}" for name in ("rotate", "snow") for one in frame_shifts(name, "cifar"))]
    parts = [TaskPart(Condition.parse(text), (0, 9), ((i, 0),)) for i, text in enumerate(texts)]
    assert [len(frames) for frames in by_sequence(part._replace(cells=()) for part in parts)] == [1, 31, 31]
    assert [len(frames) for frames in by_sequence(parts)] == [1] * 63  # other works, other batches


def test_difficulties_of_noise(data: Dataset) -> None:
    suite = Suite.from_dict({**SUITE.as_dict(), "name": "hard", "sequences": ["gaussian_noise_3"]})
    found = evaluate(toy(), suite, data, labels="identity").scores(calibration=False).models[0]
    top = top_classes("gaussian_noise", data, toy(), difficulty=3)
    wanted = flips(top[..., 0], against="first").mean()
    assert found.movement["flip_probability"]["gaussian_noise_3"].value == pytest.approx(wanted)


def test_few_classes_have_no_top_five(data: Dataset) -> None:
    three = from_arrays("toys", IMAGES, LABELS % 3)
    found = evaluate(toy(classes=3), SUITE, three, labels="identity").scores(calibration=False).models[0]
    assert list(found.movement) == ["flip_probability"]
    assert "top5_distance" not in found.metrics


# Stored frames.


@pytest.fixture(scope="module")
def frame_batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with clean images in `toys` and their sequences in `CIFAR-10-P`."""
    root = tmp_path_factory.mktemp("frame_batches")
    (root / "toys").mkdir()
    np.save(root / "toys" / "images.npy", IMAGES)
    np.save(root / "toys" / "labels.npy", LABELS)
    made = make_dataset("cifar10-p", str(root / "toys"), root / "CIFAR-10-P", names=SUITE.sequences, jobs=2)
    assert made.ok
    assert made.done == 1 + len(SUITE.sequences)
    return root


def test_cifar10_p_has_the_published_layout(frame_batches: Path) -> None:
    again = make_dataset(
        "cifar10-p", str(frame_batches / "toys"), frame_batches / "CIFAR-10-P", names=["rotate"]
    )
    assert (again.done, again.skipped) == (0, 2)
    turned = np.load(frame_batches / "CIFAR-10-P" / "rotate.npy")
    assert turned.shape == (COUNT, 31, 32, 32, 3)
    assert np.array_equal(turned[:, 15], IMAGES)
    with pytest.raises(BeaufortError, match=r"'rotat'.*'rotate'"):
        make_dataset("cifar10-p", str(frame_batches / "toys"), frame_batches / "other", names=["rotat"])


def test_stored_frame_batches_give_the_same_predictions(frame_batches: Path, scores: Scores) -> None:
    models, place = [toy(), toy(4, "other")], f"cifar10-p:{frame_batches / 'CIFAR-10-P'}"
    stored = evaluate(
        models, SUITE, place, labels="identity", options=RunOptions(clean=str(frame_batches / "toys"))
    )
    assert stored.predictions[0].stored
    found = stored.scores(calibration=False)
    for one, other in zip(found.models, scores.models, strict=True):
        assert (one.model, one.movement, one.clean) == (other.model, other.movement, other.clean)


def test_published_arrays_come_without_labels(frame_batches: Path, scores: Scores, tmp_path: Path) -> None:
    bare = tmp_path / "CIFAR-10-P"
    shutil.copytree(frame_batches / "CIFAR-10-P", bare, ignore=shutil.ignore_patterns("labels.npy"))
    with pytest.raises(ImageFileError, match=r"labels\.npy.*clean"):
        evaluate(toy(), SUITE, f"cifar10-p:{bare}", labels="identity")
    found = evaluate(
        toy(),
        SUITE,
        f"cifar10-p:{bare}",
        labels="identity",
        options=RunOptions(clean=str(frame_batches / "toys")),
    )
    mine = next(one for one in scores.models if one.model == "toy")
    assert found.scores(calibration=False).models[0].movement == mine.movement


def test_arrays_of_another_length_are_rejected(frame_batches: Path, tmp_path: Path) -> None:
    short = tmp_path / "CIFAR-10-P"
    shutil.copytree(frame_batches / "CIFAR-10-P", short)
    np.save(short / "rotate.npy", np.load(short / "rotate.npy")[:, 1:])
    with pytest.raises(ImageFileError, match=r"shape \(n, 31, h, w, 3\)"):
        evaluate(toy(), SUITE, f"cifar10-p:{short}", labels="identity")
    (short / "rotate.npy").unlink()
    with pytest.raises(BeaufortError, match=r"CIFAR-10-P.*rotate"):
        evaluate(toy(), SUITE, f"cifar10-p:{short}", labels="identity")


# What a person types.

MODULE = """
import numpy as np
from beaufort.models import as_model

def net(seed=3):
    weights = np.random.default_rng(seed).normal(0, 1, (10, 32 * 32 * 3)).astype(np.float32)
    return as_model(
        lambda images: images.reshape(len(images), -1).astype(np.float32) @ weights.T / 3000,
        name=f"net{seed}", classes=10, version=str(seed),
    )

def other():
    return net(4)
"""


def test_the_whole_way(frame_batches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small suite, for speed; the published ones differ only in their lists."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "netmodule.py").write_text(MODULE)
    suite = "name: two\nversion: 1\ndataset: toys\nscale: cifar\nsequences: [rotate, shot_noise_2]\n"
    (tmp_path / "two.yaml").write_text(suite + "metrics: [flip_probability, top5_distance]\n")
    invoke("validate", "two.yaml")
    models = ["--model", "python:netmodule:net", "--model", "python:netmodule:other"]
    run = ["run", *models, "--suite", "two.yaml", "--data", str(frame_batches / "toys"), "--store", "kept"]
    shown = invoke(*run)
    assert "Flip probability" in shown
    assert "--data" not in shown.partition("next:")[2]  # the report of sequences shows no images
    content = json.loads(invoke(*run, "--json"))
    assert set(content["scores"][0]["sequences"]["net3"]["flip_probability"]) == {"rotate", "shot_noise_2"}
    assert len(content["results"]) == 2 * (1 + 31 + 31)
    for kind, words in {
        "md": "Flip probability",
        "html": "top-5 distance",
        "latex": "Sequence",
        "csv": "top5_distance",
        "json": "rotate_frames",
        "card": "Flip probability",
    }.items():
        invoke("report", "kept", "--format", kind, "-o", f"report.{kind}", "--intervals", "resamples=100")
        assert words in Path(f"report.{kind}").read_text()
    compared = invoke("compare", "net3", "net4", "--store", "kept")
    assert "Top-5 distance" in compared
    paired = json.loads(invoke("compare", "net3", "net4", "--store", "kept", "--json"))
    assert {one["metric"] for one in paired["differences"]} >= {"flip_probability", "top5_distance"}
    assert "rotate" in paired["sequences"]["net4"]["top5_distance"]
    card = Path("report.card").read_text()
    assert "in 2 sequences of 31 frames" in card
    assert "name: Top-5 distance (0 to 15)\n" in card
    assert "10 sequences" in invoke("ls", "suites")
    output = invoke("gate", "kept::net3", "--metric", "top5_distance", "--require", "50", code=2)
    assert "top5_distance" in output


@pytest.mark.parametrize("name", ["imagenet-p", "tiny-imagenet-p", "cifar10-p"])
def test_published_suites(name: str) -> None:
    suite = get_suite(name)
    assert len(suite.sequences) == 10
    frames = sum(sequences[one][0].length(suite.scale) for one in suite.sequences)
    assert len(suite.conditions()) == 1 + frames == {"imagenet": 321, "tiny": 311, "cifar": 286}[suite.scale]
    assert Suite.from_dict(suite.as_dict()) == suite
    assert suite.steps("rotate_frames") == suite.prepare[:1]
    assert suite.steps(None) == suite.prepare
    for condition in suite.conditions():
        assert Condition.parse(str(condition)) == condition


@pytest.mark.parametrize("name", sequences)
@pytest.mark.parametrize("scale", SIDES)
def test_sequence_has_its_stated_number_of_frames(name: str, scale: str) -> None:
    """At the side of a frame of 32 pixels, whatever the scale's constants are."""
    if scale == "cifar":
        made = perturbations[name.rstrip("_23")].frames(IMAGES[:1], scale=scale)
        assert len(list(made)) == sequences[name][0].length(scale)
    facts = Condition.parse(f"x/{name}_frames@{scale}/0").facts()
    assert ("seed" in facts) is sequences[name][0].random
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.parametrize("level", ["", "cifar", "cifar/31", "cifar/-1", "cifar/07", "mnist/1", "cifar/1/2"])
def test_levels_that_mean_nothing(level: str) -> None:
    text = f"x/rotate_frames@{level}" if level else "x/rotate_frames"
    with pytest.raises(OptionError, match="must be a scale"):
        Condition.parse(text)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sequences": ["rotat"]}, "did you mean 'rotate'"),
        ({"sequences": []}, "list of sequences"),
        ({"sequences": ["rotate", "rotate"]}, "in the list already"),
        ({"scale": "mnist"}, "must be one of imagenet, tiny, cifar"),
        ({"corruptions": ["fog"], "severities": [1]}, "cannot be used together"),
        ({"metrics": ["mfr"]}, "divides by the values of a baseline"),
        ({"metrics": ["mce"], "baseline": "alexnet"}, "about corruptions alone"),
    ],
)
def test_suites_with_mistakes(change: dict[str, Any], says: str) -> None:
    with pytest.raises(SuiteError, match=says):
        Suite.from_dict({**SUITE.as_dict(), "name": "wrong", **change})


def test_flips_need_sequences() -> None:
    with pytest.raises(SuiteError, match="about sequences"):
        Suite.from_dict({**get_suite("cifar10-c").as_dict(), "name": "x", "metrics": ["flip_probability"]})

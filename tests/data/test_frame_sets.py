"""Frame sets: valid labels, pm-k by the worst frame, and missing files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort import evaluate
from beaufort._core.errors import ImageFileError, OptionError
from beaufort.cli._app import app
from beaufort.data import FrameSets, load_dataset, read_frame_sets
from beaufort.data.labels import label_maps
from beaufort.models import as_model
from beaufort.results import ResultsError, open_results, pm_scores
from beaufort.suites import Suite, get_suite

SUITE = Suite(name="frames", version=1, dataset="clips", labels=(("cat", (0,)), ("dog", (1,))))


def make_clips(root: Path, sets: dict[str, list[str]], labels: dict[str, list[Any]], light: Any) -> Path:
    """Frames whose brightness determines the prediction."""
    (root / "metadata").mkdir(parents=True)
    (root / "metadata" / "pmsets.json").write_text(json.dumps(sets))
    (root / "metadata" / "labels.json").write_text(json.dumps(labels))
    for frame in {*sets, *(one for some in sets.values() for one in some)}:
        (root / frame).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (light(frame), 0, 0)).save(root / frame)
    return root


def looker(classes: int = 2) -> Any:
    return as_model(
        lambda images: np.eye(classes, dtype=np.float32)[images[:, 0, 0, 0].astype(int)],
        name="looker",
        classes=classes,
        version=str(classes),
    )


def random_clips(root: Path, rng: np.random.Generator) -> tuple[Path, dict[str, list[str]], dict[str, bool]]:
    sets, labels, right = {}, {}, {}
    for clip in range(12):
        frames = [f"clip{clip}/{number:04d}.png" for number in range(20, 31)]
        sets[frames[5]] = [one for one in frames if one != frames[5] and rng.random() < 0.8]
        for one in frames:
            labels[one] = ["cat"] if rng.random() < 0.5 else ["cat", "dog"]
            right[one] = bool(rng.random() < 0.85)
    labels = {one: some if right[one] else ["cat"] for one, some in labels.items()}
    return make_clips(root, sets, labels, lambda one: 0 if right[one] else 1), sets, right


def test_pm_k_is_the_worst_frame_of_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root, sets, right = random_clips(tmp_path / "clips", np.random.default_rng(3))
    evaluate([looker()], SUITE, f"frame-sets:{root}", "kept")
    found = pm_scores(open_results("kept"), read_frame_sets(root), range(6))
    values = [one.accuracy.value for one in found]
    for k, value in enumerate(values):
        expected = np.mean(
            [
                right[anchor] and all(right[one] for one in some if abs(int(one[-8:-4]) - 25) <= k)
                for anchor, some in sets.items()
            ]
        )
        assert value == pytest.approx(expected)
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    assert {one.accuracy.n for one in found} == {12}
    result = CliRunner().invoke(app, ["frames", "kept", str(root), "-k", "0,5", "--json"])
    assert result.exit_code == 0, result.output
    assert [one["setting"] for one in json.loads(result.output)] == ["pm-0", "pm-5"]
    anchors = evaluate([looker()], SUITE, f"frame-sets:{root}#anchors", "anchors")
    assert anchors.results[0].accuracy == pytest.approx(values[0])
    with pytest.raises(ResultsError, match=r"looker .* pm-5"):
        pm_scores(open_results("anchors"), read_frame_sets(root), [5])
    with pytest.raises(OptionError, match=r"k must be .* got -1"):
        pm_scores(open_results("kept"), read_frame_sets(root), [-1])


def test_any_label_of_a_frame_is_right(tmp_path: Path) -> None:
    sets = {"a/1.png": ["a/2.png"]}
    root = make_clips(tmp_path / "clips", sets, {"a/1.png": ["cat", "dog"], "a/2.png": ["cat"]}, lambda _: 1)
    found = evaluate([looker()], SUITE, f"frame-sets:{root}", tmp_path / "kept")
    assert found.results[0].correct == 1
    assert found.results[0].images == 2


def test_numbers_of_ones_own_are_names(tmp_path: Path) -> None:
    frames = [f"clip/{number:04d}.png" for number in range(11)]
    labels = {frame: [number] for number, frame in enumerate(frames)}  # sorted as texts, 10 is the third
    root = make_clips(tmp_path / "clips", {frame: [] for frame in frames}, labels, lambda one: int(one[5:9]))
    dataset = load_dataset(f"frame-sets:{root}")
    assert [dataset.classes[label] for label in dataset.labels] == list(map(str, range(11)))
    suite = Suite(name="frames", version=1, dataset="clips")
    assert evaluate([looker(12)], suite, dataset, tmp_path / "kept").results[0].accuracy == 1


def test_a_class_that_imagenet_lacks_is_wrong_and_counts(tmp_path: Path) -> None:
    cow = label_maps["ytbb-robust"].classes.index("cow")
    person = label_maps["ytbb-robust"].grouping["person"][0]
    sets = {"x_1/frame-5.jpg": ["x_1/frame-6.jpg"], "y_1/frame-5.jpg": []}
    labels: dict[str, list[Any]] = {"x_1/frame-5.jpg": [0], "y_1/frame-5.jpg": [cow]}
    root = make_clips(tmp_path / "ytbb", sets, labels, lambda _: 0)
    net = as_model(
        lambda images: np.eye(1000, dtype=np.float32)[np.full(len(images), person)] - 9,
        name="net",
        classes=1000,
        version="1",
    )
    part = get_suite("ytbb-robust").part("ytbb-robust-frames")
    found = evaluate([net], part, f"ytbb-robust:{root}", tmp_path / "kept")
    assert (found.results[0].images, found.results[0].correct, found.results[0].unlabeled) == (3, 2, 0)
    zero, ten = pm_scores(open_results(tmp_path / "kept"), read_frame_sets(root))
    assert zero.accuracy.value == ten.accuracy.value == 0.5


@pytest.mark.parametrize(
    "order", [("x_1/frame-1.jpg", "x_1/frame-9.jpg"), ("x_1/frame-9.jpg", "x_1/frame-1.jpg")]
)
def test_a_frame_of_two_anchors_is_judged_by_each(tmp_path: Path, order: tuple[str, str]) -> None:
    """A frame of two anchors is judged by the labels of each, whatever the order in `pmsets.json`."""
    names = label_maps["ytbb-robust"].classes
    cat, dog = (next(i for i, name in enumerate(names) if name == wanted) for wanted in ("cat", "dog"))
    one, other = "x_1/frame-1.jpg", "x_1/frame-9.jpg"
    sets = {anchor: ["x_1/frame-5.jpg"] for anchor in order}
    root = make_clips(
        tmp_path / "ytbb", sets, {one: [cat], other: [dog]}, lambda frame: 200 * (frame == other)
    )
    outputs = [label_maps["ytbb-robust"].grouping[name][0] for name in ("cat", "dog")]
    net = as_model(
        lambda images: np.eye(1000, dtype=np.float32)[
            np.array(outputs)[(images[:, 0, 0, 0] > 99).astype(int)]
        ],
        name="net",
        classes=1000,
        version="1",
    )
    part = get_suite("ytbb-robust").part("ytbb-robust-frames")
    evaluate([net], part, f"ytbb-robust:{root}", tmp_path / "kept")
    zero, ten = pm_scores(open_results(tmp_path / "kept"), read_frame_sets(root))
    assert (zero.accuracy.value, ten.accuracy.value) == (1.0, 0.5)


def test_missing_frames_and_labels(tmp_path: Path) -> None:
    sets = {"a/1.png": ["a/2.png", "a/3.png"]}
    labels: dict[str, list[Any]] = {frame: ["cat"] for frame in ("a/1.png", "a/2.png", "a/3.png")}
    root = make_clips(tmp_path / "clips", sets, labels, lambda _: 0)
    (root / "a" / "3.png").unlink()
    with pytest.raises(ImageFileError, match=r"1.*3.*'a/3.png'"):
        load_dataset(f"frame-sets:{root}")
    metadata = root / "metadata"
    (metadata / "labels.json").write_text(json.dumps({"a/1.png": ["cat"], "a/3.png": ["cat"]}))
    with pytest.raises(ImageFileError, match=r"1.*3.*'a/2.png'"):
        load_dataset(f"frame-sets:{root}")
    (metadata / "labels.json").unlink()
    with pytest.raises(ImageFileError, match=r"labels\.json.*not found"):
        load_dataset(f"frame-sets:{root}")
    (metadata / "pmsets.json").write_text(json.dumps({"../a.png": []}))
    with pytest.raises(ImageFileError, match="out of the dataset"):
        load_dataset(f"frame-sets:{root}")
    (metadata / "pmsets.json").write_text("[1]")
    with pytest.raises(ImageFileError, match=r"frames.* anchor"):
        load_dataset(f"frame-sets:{root}")
    with pytest.raises(OptionError, match="unknown part 'x'"):
        load_dataset(f"frame-sets:{root}#x")
    with pytest.raises(ImageFileError, match=r"'a/b\.png'"):
        list(FrameSets({"a/b.png": ()}).within("a/b.png", 1))


def test_label_numbers_beyond_the_classes(tmp_path: Path) -> None:
    root = make_clips(tmp_path / "vid", {"a/1.png": []}, {"a/1.png": [30]}, lambda _: 0)
    with pytest.raises(ImageFileError, match=r"30.*'a/1\.png'"):
        load_dataset(f"vid-robust:{root}")


def test_the_published_sets(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "imagenet_testbed"
    sets = read_frame_sets(folder / "vid_robust_pmsets.json")
    sizes = [len(some) for some in sets.neighbors.values()]
    assert (len(sizes), sum(sizes), sizes.count(20), min(sizes)) == (1109, 21070, 889, 0)
    assert all(set(sets.within(anchor, 10)) == {anchor, *some} for anchor, some in sets.neighbors.items())
    labels = json.loads((folder / "vid_robust_labels.json").read_text())
    assert set(sets.frames) == set(labels)
    few = {anchor: list(sets.neighbors[anchor]) for anchor in list(sets.neighbors)[:5]}
    wanted = {*few, *(one for some in few.values() for one in some)}
    root = make_clips(tmp_path / "vid", few, {one: labels[one] for one in wanted}, lambda _: 0)
    data = load_dataset(f"vid-robust:{root}")
    assert len(data) == len(wanted)
    assert data.classes == label_maps["vid-robust"].classes
    assert data.label_sets is not None
    assert all(list(data.label_sets.of(one)) == labels[one] for one in data.ids)

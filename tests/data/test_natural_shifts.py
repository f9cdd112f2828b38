"""Natural shifts in their published layouts: labels, and errors for incomplete sets."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beaufort import evaluate
from beaufort._core.errors import ImageFileError, OptionError
from beaufort.cli._app import app
from beaufort.data import Dataset, load_dataset, natural_shifts, readers, select_classes
from beaufort.data.labels import class_ids, class_names, label_maps
from beaufort.evaluation import RunOptions
from beaufort.models import as_model
from beaufort.results import open_parts, score, shift_scores
from beaufort.suites import SHIFT_SUITE_NAMES, Suite, get_suite

WNIDS = class_ids("imagenet-1k")


def paint(path: Path, number: int, light: int = 0, size: int = 16, frame: int = 0) -> None:
    """Write an image that encodes a class of ImageNet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (size, size), (255, 0, 0))
    image.paste((number // 256, number % 256, light), (frame, frame, size - frame, size - frame))
    image.save(path)


def reads_colors(images: Any) -> Any:
    """A model of 1,000 outputs that decodes images of `paint`; output 5 wins for bright images."""
    seen = images[:, 0, 0].astype(int)
    logits = np.zeros((len(images), 1000), np.float32)
    logits[np.arange(len(images)), np.minimum(seen[:, 0] * 256 + seen[:, 1], 999)] = 5
    logits[seen[:, 2] > 100, 5] = 9  # a class that no subset has
    return logits


MODEL = as_model(reads_colors, name="reader", classes=1000, version="1")


def folders(root: Path, numbers: dict[str, int], light: int = 0) -> Path:
    for name, number in numbers.items():
        paint(root / name / "a.png", number, light)
    return root


# Label maps


def test_sizes_of_label_maps() -> None:
    sizes = {name: (len(one.classes), len(one.class_of)) for name, one in label_maps.items()}
    assert sizes == {
        "imagenet-a": (200, 200),
        "imagenet-d": (113, 125),
        "imagenet-r": (200, 200),
        "objectnet": (113, 125),
        "objectnet-125": (125, 125),
        "one-eighth": (125, 125),
        "vid-robust": (30, 288),
        "ytbb-robust": (24, 231),
    }
    assert set(label_maps["objectnet"].class_of) == set(label_maps["imagenet-d"].class_of)
    assert [label_maps["ytbb-robust"].outputs[i] for i in (6, 8, 14, 18, 22)] == [()] * 5
    for name in ("imagenet-a", "imagenet-r", "objectnet-125", "one-eighth"):
        one = label_maps[name]
        assert all(WNIDS[some[0]] == wnid for wnid, some in zip(one.classes, one.outputs, strict=True))


def test_label_maps_are_the_published_ones(shared: Path) -> None:
    subsets = json.loads((shared / "data/imagenet_testbed/class_subsets.json").read_text())
    assert sorted(label_maps["imagenet-a"].class_of) == sorted(subsets["imagenet_a"])
    assert sorted(label_maps["imagenet-r"].class_of) == sorted(subsets["imagenet_r"])
    assert sorted(label_maps["objectnet-125"].class_of) == sorted(subsets["objectnet_order"])
    published = subsets["objectnet_folder_to_imagenet"]
    assert {name: list(some) for name, some in label_maps["objectnet"].grouping.items()} == published
    for name, key in (("vid-robust", "vid_robust"), ("ytbb-robust", "ytbb_robust")):
        found = {str(i): list(some) for i, some in enumerate(label_maps[name].outputs) if some}
        assert found == subsets[key]
    mined = json.loads((shared / "data/imagenet_d/category_to_imagenet_ids.json").read_text())
    assert {name: list(some) for name, some in label_maps["imagenet-d"].grouping.items()} == mined


# ImageNetV2


def test_folders_of_imagenetv2_are_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(natural_shifts, "_V2_CLASS_SIZE", 1)
    root = folders(tmp_path / "v2", {str(number): number for number in range(1000)})
    data = load_dataset(f"imagenetv2:{root}")
    assert data.classes == class_names("imagenet-1k")
    assert [data[place].label for place in range(4)] == [0, 1, 10, 100]  # the order of names as texts
    assert all(
        int(data[place].image[0, 0, 0]) * 256 + int(data[place].image[0, 0, 1]) == data[place].label
        for place in range(0, 1000, 97)
    )
    paint(root / "7" / "b.png", 7)
    with pytest.raises(ImageFileError, match=r"\b1 images.*\b2 in '7'"):
        load_dataset(f"imagenetv2:{root}")
    shutil.rmtree(root / "17")
    with pytest.raises(ImageFileError, match=r"1.*1,000.*imagenetv2 .*'17'"):
        load_dataset(f"imagenetv2:{root}")
    with pytest.raises(OptionError, match="unknown part 'x'"):
        load_dataset(f"imagenetv2:{root}#x")


# Folders called by WordNet id


@pytest.mark.parametrize("kind", ["imagenet-a", "imagenet-r"])
def test_exactly_the_published_classes(tmp_path: Path, kind: str) -> None:
    wanted = label_maps[kind]
    root = folders(tmp_path / "set", {name: int(some[0]) for name, some in wanted.grouping.items()})
    assert load_dataset(f"{kind}:{root}").classes == tuple(sorted(wanted.classes))
    (root / "n00000000").mkdir()
    with pytest.raises(ImageFileError, match=r"'n00000000'.*\b200\b"):
        load_dataset(f"{kind}:{root}")
    shutil.rmtree(root / wanted.classes[3])
    with pytest.raises(ImageFileError, match=rf"1.*200.*'{wanted.classes[3]}'"):
        load_dataset(f"{kind}:{root}")


# ObjectNet


def test_a_natural_set_keeps_the_contract(tmp_path: Path) -> None:
    """The digest depends on the content only, and datasets can be pickled."""
    numbers = {name: int(some[0]) for name, some in label_maps["imagenet-a"].grouping.items()}
    folders(tmp_path / "here", numbers)
    dataset = load_dataset(f"imagenet-a:{tmp_path / 'here'}")
    digest = dataset.digest()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(dataset))[7].image, dataset[7].image)
    (tmp_path / "here").rename(tmp_path / "there")
    assert load_dataset(f"imagenet-a:{tmp_path / 'there'}").digest() == digest
    first = sorted((tmp_path / "there").rglob("*.png"))[0]
    paint(first, 1, light=9)
    assert load_dataset(f"imagenet-a:{tmp_path / 'there'}").digest() != digest


def objectnet(root: Path) -> Path:
    for name, some in label_maps["objectnet"].grouping.items():
        paint(root / "images" / name / "a.png", int(some[-1]), size=20, frame=2)
    paint(root / "images" / "air_freshener" / "a.png", 0, size=20, frame=2)
    return root


def test_objectnet_without_frame_and_other_classes(tmp_path: Path) -> None:
    root = objectnet(tmp_path / "objectnet-1.0")
    data = load_dataset(f"objectnet:{root}")
    assert (len(data), data.classes) == (113, label_maps["objectnet"].classes)
    assert all(sample.image.shape == (16, 16, 3) for sample in map(data.__getitem__, range(3)))
    assert not any(sample.image[0, 0, 0] == 255 for sample in map(data.__getitem__, range(113)))
    assert "air_freshener/a.png" not in data.ids
    assert data.digest() != load_dataset(f"folder:{root / 'images'}").digest()
    found = evaluate([MODEL], get_suite("objectnet").part("objectnet"), data, tmp_path / "kept")
    assert found.results[0].accuracy == 1
    assert found.results[0].labels.startswith("113 classes, from 125 of 1,000 outputs; only these compete")
    paint(root / "images" / "beside.png", 0)
    for name in ("banana", "air_freshener"):
        (root / "images" / name / "notes.txt").touch()
    data = load_dataset(f"objectnet:{root}")
    assert [problem.id for problem in data.problems] == ["beside.png"]
    assert [problem.id for problem in data.ignored] == ["banana/notes.txt"]
    shutil.rmtree(root / "images" / "banana")
    with pytest.raises(ImageFileError, match=r"1.*113.*'banana'"):
        load_dataset(f"objectnet:{root}")


# ImageNet-D


def test_imagenet_d_as_published(tmp_path: Path) -> None:
    root = tmp_path / "ImageNet-D"
    paint(root / "background" / "chair" / "a.png", int(label_maps["imagenet-d"].grouping["chair"][2]))
    paint(root / "background" / "banana" / "b.png", 954, light=200)
    paint(root / "texture" / "banana" / "c.png", 954)
    paint(root / "material" / "banana" / "d.png", 0)
    data = load_dataset(f"imagenet-d:{root}")
    assert list(data.ids) == [
        *("background/banana/b.png", "background/chair/a.png"),
        *("material/banana/d.png", "texture/banana/c.png"),
    ]
    for suite, accuracy, words in (
        ("imagenet-d", 0.5, "every output competes (convention all)"),
        ("imagenet-d-113", 0.75, "only these compete (convention restricted)"),
    ):
        part = get_suite(suite).part("imagenet-d")
        found = evaluate([MODEL], part, data, tmp_path / suite)
        assert found.results[0].accuracy == accuracy
        assert words in found.results[0].labels
    assert list(load_dataset(f"imagenet-d:{root}#texture").ids) == ["texture/banana/c.png"]
    with pytest.raises(OptionError, match="unknown part 'color'"):
        load_dataset(f"imagenet-d:{root}#color")
    paint(root / "texture" / "beside.png", 0)
    (root / "texture" / "banana" / "notes.txt").touch()
    again = load_dataset(f"imagenet-d:{root}")
    assert (list(again.ids), data.problems, data.ignored) == (list(data.ids), (), ())
    assert [problem.id for problem in again.problems] == ["texture/beside.png"]
    assert [problem.id for problem in again.ignored] == ["texture/banana/notes.txt"]
    with pytest.raises(ImageFileError, match=r"notes\.txt"):
        load_dataset(f"imagenet-d:{root}", strict=True)
    paint(root / "texture" / "unicorn" / "c.png", 1)
    with pytest.raises(ImageFileError, match=r"'unicorn'.*113"):
        load_dataset(f"imagenet-d:{root}")
    shutil.rmtree(root / "material")
    with pytest.raises(ImageFileError, match=r"1.*3.*'material'"):
        load_dataset(f"imagenet-d:{root}")


# The clean counterpart


def validation(root: Path, light: int = 0) -> Path:
    """One image of each class of ImageNet, as class folders."""
    for number, wnid in enumerate(WNIDS):
        paint(root / wnid / "v.png", number, light)
    return root


@pytest.fixture(scope="module")
def val(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return validation(tmp_path_factory.mktemp("data") / "val")


def test_validation_images_on_the_classes_of_a_shift(val: Path, tmp_path: Path) -> None:
    every = load_dataset(str(val))
    for name, wanted in label_maps.items():
        some = select_classes(every, wanted)
        assert len(some) == len(wanted.class_of)
        assert some.classes == wanted.classes
        for place in range(0, len(some), 41):
            number = WNIDS.index(some.ids[place].split("/")[0])
            assert wanted.class_of[number] == some[place].label, name
    numbers = Dataset("numbers", every.classes, every.ids, every.labels, every.pixels)  # not by names
    one, two = (select_classes(data, label_maps["objectnet"]) for data in (every, numbers))
    assert one.digest() == two.digest() != every.digest()
    few = folders(tmp_path / "few", {WNIDS[0]: 0, WNIDS[1]: 1})
    with pytest.raises(OptionError, match=r"200 of 200 classes.*imagenet-a\b.*\bfew"):
        select_classes(load_dataset(str(few)), label_maps["imagenet-a"])
    toys = folders(tmp_path / "toys", {"ball": 0, "blocks": 1})
    with pytest.raises(OptionError, match=r"toys.*ImageNet"):
        select_classes(load_dataset(str(toys)), label_maps["imagenet-a"])


def test_imagenet_a_beside_its_clean_counterpart(
    val: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = label_maps["imagenet-a"].grouping
    hard = tmp_path / "imagenet-a"
    numbers = [int(some[0]) for some in wanted.values()]
    for place, name in enumerate(wanted):
        taken_for = numbers[place] if place % 4 else numbers[place - 1]
        paint(hard / name / "a.png", taken_for, light=200 if place % 2 else 0)
    data = {"imagenet-val": str(val), "imagenet-a": f"imagenet-a:{hard}"}
    found = evaluate([MODEL], "imagenet-a", data, "kept", options=RunOptions(keep_logits=True))
    accuracy = {result.condition: result.accuracy for result in found.results}
    assert accuracy == {"imagenet-val-imagenet-a": 1, "imagenet-a": 0.75}
    (clean, shifted) = shift_scores([score(part, calibration=False) for part in open_parts("kept")])
    assert (clean.drop, shifted.counterpart) == (None, "imagenet-val-imagenet-a")
    assert shifted.drop is not None
    assert shifted.drop.value == 0.25
    assert "convention restricted" in shifted.labels
    every = evaluate([MODEL], "imagenet-a", data, "all", options=RunOptions(convention="all"))
    assert {result.condition: result.accuracy for result in every.results}["imagenet-a"] == 0.25
    result = CliRunner().invoke(app, ["report", "kept", "--labels", "convention=all", "--format", "md"])
    assert result.exit_code == 0, result.output
    assert "convention all" in result.output
    assert "25.0 [" in result.output


@pytest.mark.parametrize("suite_name", SHIFT_SUITE_NAMES)
def test_every_suite_names_a_reader_or_plain_folders(suite_name: str) -> None:
    """Every kind of dataset in the notes of a suite exists."""
    suite = get_suite(suite_name)
    kind = suite.notes.rpartition("Data: ")[2].partition(":")[0]
    assert kind in readers


def test_stylized_and_sketch_have_all_classes(val: Path, tmp_path: Path) -> None:
    for kind in ("imagenet-sketch", "stylized-imagenet"):
        assert len(load_dataset(f"{kind}:{val}")) == 1000
    few = folders(tmp_path / "few", {WNIDS[0]: 0})
    with pytest.raises(ImageFileError, match=r"999 of 1,000 .*imagenet-sketch"):
        load_dataset(f"imagenet-sketch:{few}")


@pytest.mark.parametrize("kind", ["imagenet-sketch", "imagenetv2"])
def test_a_partial_validation_set_is_rejected_for_suites_of_1000_classes(
    kind: str, val: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(natural_shifts, "_V2_CLASS_SIZE", 1)
    if kind == "imagenetv2":
        shift, suite = folders(tmp_path / "v2", {str(n): n for n in range(1000)}), "imagenetv2-top-images"
    else:
        shift, suite = val, kind
    partial = folders(tmp_path / "partial", {wnid: n for n, wnid in enumerate(WNIDS[:900])})
    data = {"imagenet-val": str(partial), suite: f"{kind}:{shift}"}
    with pytest.raises(OptionError, match=r"100.*1,000.*imagenet-1k.*complete"):
        evaluate([MODEL], suite, data, tmp_path / "kept")
    found = evaluate([MODEL], suite, {**data, "imagenet-val": str(val)}, tmp_path / "kept", limit=20)
    assert [result.accuracy for result in found.results] == [1, 1]


def test_a_part_of_the_classes_gives_a_note(tmp_path: Path) -> None:
    partial = folders(tmp_path / "partial", {wnid: n for n, wnid in enumerate(WNIDS[:200])})
    suite = Suite(name="clean", version=1, dataset="partial")
    found = evaluate([MODEL], suite, str(partial), tmp_path / "kept", limit=20)
    assert any("200-way" in note and "--labels convention=all" in note for note in found.notes)
    every = evaluate(
        [MODEL], suite, str(partial), tmp_path / "kept", limit=20, options=RunOptions(convention="all")
    )
    assert not any("-way" in note for note in every.notes)


def test_unexpected_sizes_and_empty_directories_are_noted(val: Path, tmp_path: Path) -> None:
    wanted = label_maps["imagenet-a"].classes
    root = folders(tmp_path / "a", {name: n for n, name in enumerate(wanted[1:])})
    (root / wanted[0]).mkdir()
    (root / "__MACOSX" / wanted[0]).mkdir(parents=True)
    (root / "__MACOSX" / wanted[0] / "a.png").write_bytes(b"resource fork")
    found = load_dataset(f"imagenet-a:{root}")
    assert len(found) == 199
    assert "__MACOSX" not in found.classes
    assert any("1 class directory" in note and repr(wanted[0]) in note for note in found.notes)
    assert any("7,500" in note and "199" in note for note in found.notes)
    assert any("50,889" in note for note in load_dataset(f"imagenet-sketch:{val}").notes)
    notes = evaluate(
        [MODEL],
        "imagenet-a",
        {"imagenet-val": str(val), "imagenet-a": f"imagenet-a:{root}"},
        tmp_path / "kept",
        limit=20,
    ).notes
    assert any("7,500" in note for note in notes)


def test_a_nested_download_is_named(tmp_path: Path) -> None:
    inner = folders(tmp_path / "v2" / "imagenetv2-top-images-format-val", {str(n): n for n in range(1000)})
    with pytest.raises(ImageFileError, match=rf"did you mean {inner}\?"):
        load_dataset(f"imagenetv2:{tmp_path / 'v2'}")

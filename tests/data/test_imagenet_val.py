"""ImageNet's validation images in one directory, with the usual lists of labels."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from beaufort._core.errors import ImageFileError
from beaufort.data import dataset_kind, load_dataset
from beaufort.data.labels import class_ids, devkit_ids

NUMBERS = (1, 2, 3, 4, 5, 6)
WNIDS = ("n01751748", "n09193705", "n02105855", "n04263257", "n03125729", "n01735189")
"""Labels of the first six validation images: sea snake, alp and so on."""
KIT = (490, 361, 171, 822, 297, 482)
"""Their numbers in the development kit."""
PLACES = tuple(class_ids("imagenet-1k").index(wnid) for wnid in WNIDS)


def name(number: int) -> str:
    return f"ILSVRC2012_val_{number:08}"


def images(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in NUMBERS:
        Image.new("RGB", (20, 20), (number, 0, 0)).save(folder / f"{name(number)}.JPEG", "JPEG")
    return folder


def one_a_line(first: tuple[object, ...], rest: list[object]) -> str:
    lines = [*first, *(rest[i % len(rest)] for i in range(50_000 - len(first)))]
    return "\n".join(map(str, lines)) + "\n"


LISTS: dict[str, Callable[[], str]] = {
    "ILSVRC2012_validation_ground_truth.txt": lambda: one_a_line(KIT, list(range(1, 1001))),
    "imagenet_2012_validation_synset_labels.txt": lambda: one_a_line(WNIDS, list(class_ids("imagenet-1k"))),
    "LOC_val_solution.csv": lambda: (
        "ImageId,PredictionString\n"
        + "".join(
            f"{name(n)},{wnid} 85 1 499 272 {wnid} 1 1 2 2 \n" for n, wnid in zip(NUMBERS, WNIDS, strict=True)
        )
    ),
    "val.txt": lambda: "".join(f"{name(n)}.JPEG {place}\n" for n, place in zip(NUMBERS, PLACES, strict=True)),
}
LIST = pytest.mark.parametrize("table", LISTS)


def test_the_development_kit_has_every_class_once() -> None:
    assert sorted(devkit_ids()) == list(class_ids("imagenet-1k"))
    assert tuple(devkit_ids()[number - 1] for number in KIT) == WNIDS


@LIST
@pytest.mark.parametrize("place", [".", "..", "../ILSVRC2012_devkit_t12/data"])
def test_a_list_in_the_folder_or_beside_it(tmp_path: Path, table: str, place: str) -> None:
    folder = images(tmp_path / "val")
    (folder / place).mkdir(parents=True, exist_ok=True)
    (folder / place / table).write_text(LISTS[table]())
    assert dataset_kind(folder) == "imagenet-val"
    dataset = load_dataset(folder)
    expected = {f"{wnid}/{name(n)}.JPEG": p for n, wnid, p in zip(NUMBERS, WNIDS, PLACES, strict=True)}
    assert dict(zip(dataset.ids, dataset.labels.tolist(), strict=True)) == expected
    assert dataset.classes == class_ids("imagenet-1k")


def test_it_is_the_dataset_of_class_folders(tmp_path: Path) -> None:
    """Sorted into folders or not: the same ids, labels and digest, so that results are shared."""
    flat = images(tmp_path / "flat")
    (tmp_path / "val.txt").write_text(LISTS["val.txt"]())
    for wnid in class_ids("imagenet-1k"):
        (tmp_path / "sorted" / wnid).mkdir(parents=True)
    for number, wnid in zip(NUMBERS, WNIDS, strict=True):
        file = f"{name(number)}.JPEG"
        (tmp_path / "sorted" / wnid / file).write_bytes((flat / file).read_bytes())
    one, other = load_dataset(flat), load_dataset(tmp_path / "sorted")
    assert list(one.ids) == list(other.ids)
    assert one.digest() == other.digest()
    assert one.by_name
    assert other.by_name


def test_a_list_elsewhere_is_named(tmp_path: Path) -> None:
    folder = images(tmp_path / "a" / "b" / "val")
    with pytest.raises(ImageFileError, match="another file after #"):
        load_dataset(f"imagenet-val:{folder}")
    (tmp_path / "mine.csv").write_text("".join(f"{name(n)}.JPEG,{PLACES[n - 1]}\n" for n in NUMBERS))
    assert len(load_dataset(f"imagenet-val:{folder}#{tmp_path / 'mine.csv'}")) == 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("490\n361\n", "50,000 lines, one per image, got 2"),
        (one_a_line((1001,), [5]), "list of labels"),
        (f"{name(1)}.JPEG 1000\n", "list of labels"),
        (f"{name(1)}.JPEG cat\n", "list of labels"),
        (f"{name(1)}.JPEG 65\n", "5 of 6 labels"),
        ("", "50,000 lines"),
        ("\x00\x01", "50,000 lines"),
    ],
)
def test_lists_that_are_rejected(tmp_path: Path, content: str, message: str) -> None:
    folder = images(tmp_path / "val")
    (folder / "val.txt").write_text(content)
    with pytest.raises(ImageFileError, match=message):
        load_dataset(folder)


def test_the_kit_agrees_with_photos_of_every_class(shared: Path) -> None:
    """A thousand photos, one a class: each class of the kit is that of its WordNet id."""
    with (shared / "data" / "imagenet_val_1k" / "labels.csv").open(newline="") as file:
        wnids = {row["wnid"]: int(row["label"]) for row in csv.DictReader(file)}
    assert {wnid: class_ids("imagenet-1k").index(wnid) for wnid in devkit_ids()} == wnids

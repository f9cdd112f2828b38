"""Lists of labels: valid and rejected ones."""

from __future__ import annotations

import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import ImageFileError, UnknownNameError
from beaufort.data import Problem, Sample, iterate, load_dataset


def listed(root: Path, text: str, *files: str) -> Path:
    for i, file in enumerate(files):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (16, 16), i).save(root / file)
    (root / "labels.csv").write_text(text, encoding="utf-8-sig")
    return root


def test_file_order_and_names(tmp_path: Path) -> None:
    text = "label,file,name\n2,z.png,two\n0,a/b.png,zero\n"
    dataset = load_dataset(listed(tmp_path, text, "z.png", "a/b.png"))
    assert dataset.ids == ["z.png", "a/b.png"]
    assert dataset.labels.tolist() == [2, 0]
    assert dataset.classes == ("zero", "1", "two")


def test_a_csv_of_any_name(tmp_path: Path) -> None:
    listed(tmp_path, "file,label\na.png,0\n", "a.png").joinpath("labels.csv").rename(tmp_path / "val.csv")
    dataset = load_dataset(tmp_path / "val.csv")
    assert (dataset.name, dataset.ids) == ("val.csv", ["a.png"])


def test_labels_that_are_names(tmp_path: Path) -> None:
    dataset = load_dataset(listed(tmp_path, "file,label\na.png,dog\nb.png,cat\n", "a.png", "b.png"))
    assert (dataset.classes, dataset.labels.tolist()) == (("cat", "dog"), [1, 0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,label\na.png,0\nb.png,1O\n", "line 3"),
        ("file,label\na.png,0\nb.png,\n", "line 3"),
        ("file,label\na.png,-1\nb.png,0\n", "line 2"),
        (
            "file,label\na.png,0.0\nb.png,1.0\n",
            "line 2: labels must be .* got '0.0'",
        ),
        ("file,label\na.png,cat\nb.png,-1\n", "line 3: labels must be all non-negative integers"),
        ("file,label\na.png,99999999999999999999\n", "too large"),
        ("file,label\na.png,0\na.png,1\n", "listed in line 2"),
        ("file,label\n../a.png,0\n", "leads out"),
        ("file,label\nx/../../a.png,0\n", "leads out"),
        ("file,label\n/etc/passwd,0\n", "leads out"),
        ("file,label\nC:\\a.png,0\n", "leads out"),
        ("file,label\n..\\a.png,0\n", "leads out"),
        ("file,label,zip\na.png,0,../a.zip\n", "leads out"),
        ("file,label\n,0\n", "not a file name"),
        ("file,label\n", "lists no images"),
        ("name,label\na.png,0\n", "columns"),
        ('file,label\n"a.png,0\n', "as a CSV file"),
        ("", "columns"),
    ],
)
def test_lists_that_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ImageFileError, match=message):
        load_dataset(listed(tmp_path, text))


def test_binary_lists_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_bytes(b"file,label\n\xff\xfe.png,0\n")
    with pytest.raises(ImageFileError, match="UTF-8"):
        load_dataset(tmp_path)


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    listed(tmp_path, "file,label,zip\na.png,0,x.zip\nb.png,1,x.zip\nc.png,2,\n", "a.png", "b.png", "c.png")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in ("a.png", "b.png"):
            archive.write(tmp_path / name, name)
            (tmp_path / name).unlink()
    return tmp_path


def test_zips_and_files_together(zipped: Path) -> None:
    assert all(isinstance(item, Sample) for item in iterate(load_dataset(zipped, strict=True)))
    assert sorted(path.name for path in zipped.iterdir() if path.suffix == ".png") == ["c.png"]


def test_listed_files_that_are_missing(zipped: Path) -> None:
    (zipped / "c.png").unlink()
    with zipfile.ZipFile(zipped / "x.zip") as archive:
        kept = archive.read("a.png")
    with zipfile.ZipFile(zipped / "x.zip", "w") as archive:
        archive.writestr("a.png", kept)
    walk = iterate(load_dataset(zipped))
    assert len(list(walk)) == 3
    assert [problem.id for problem in walk.problems] == ["b.png", "c.png"]


def test_a_damaged_member_is_a_problem(zipped: Path) -> None:
    content = bytearray((zipped / "x.zip").read_bytes())
    content[content.index(b"IDAT") + 6] ^= 1
    (zipped / "x.zip").write_bytes(content)
    items = list(iterate(load_dataset(zipped)))
    assert isinstance(items[0], Problem)
    assert "checksum" in items[0].message


@pytest.mark.parametrize("content", [b"", b"PK\3\4 no zip"])
def test_a_file_that_is_not_a_zip(zipped: Path, content: bytes) -> None:
    (zipped / "x.zip").write_bytes(content)
    with pytest.raises(ImageFileError, match="zip"):
        load_dataset(zipped)


def test_large_members_are_rejected(zipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb is rejected by its directory entry, before it is decompressed."""
    monkeypatch.setattr("beaufort.data._files.MAX_MEMBER_BYTES", 1 << 20)
    with zipfile.ZipFile(zipped / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", bytes((1 << 20) + 1))
        archive.writestr("b.png", b"")
    walk = iterate(load_dataset(zipped))
    list(walk)
    assert ["at most" in walk.problems[0].message, "empty" in walk.problems[1].message] == [True, True]


def test_a_name_twice_in_a_zip(zipped: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(zipped / "x.zip", "a") as archive:
        archive.writestr("a.png", b"another")
    with pytest.raises(ImageFileError, match="same name"):
        load_dataset(zipped)


def test_imagenet_photos(shared: Path) -> None:
    dataset = load_dataset(shared / "data" / "imagenet_val_1k", strict=True)
    assert len(dataset) == 1000
    np.testing.assert_array_equal(dataset.labels, np.arange(1000))
    assert dataset.ids[0] == "ILSVRC2012_val_00000293.jpg"
    assert dataset.classes[:2] == ("tench", "goldfish")
    assert min(dataset[999].image.shape[:2]) == 256
    assert len(list(iterate(dataset, 0, 30))) == 30
    assert dataset.digest() == dataset.digest(fresh=True)


def test_other_columns_are_kept(tmp_path: Path) -> None:
    text = "file,label,camera,season\na.png,0,nikon, winter\nb.png,1,,summer\n"
    dataset = load_dataset(listed(tmp_path, text, "a.png", "b.png"))
    assert dataset.column("camera") == ["nikon", ""]
    assert dataset.column("season") == ["winter", "summer"]
    assert dataset.column("class") == ["0", "1"]
    plain = load_dataset(listed(tmp_path, "file,label\na.png,0\nb.png,1\n", "a.png", "b.png"))
    assert plain.digest() == dataset.digest()
    assert dataset.shuffled(1).first(1).column("season") in (["winter"], ["summer"])
    with pytest.raises(UnknownNameError, match=r"'saison'.*'season'"):
        dataset.column("saison")


def test_cells_without_a_column_are_rejected(tmp_path: Path) -> None:
    """A comma without quotation marks would truncate a value silently."""
    text = "file,label,hospital\na.png,0,Nord\nb.png,1,Mitte, Berlin\n"
    with pytest.raises(ImageFileError, match=r"3.*' Berlin'"):
        load_dataset(listed(tmp_path, text, "a.png", "b.png"))
    quoted = text.replace("Mitte, Berlin", '"Mitte, Berlin", ,')
    assert load_dataset(listed(tmp_path, quoted)).column("hospital") == ["Nord", "Mitte, Berlin"]


def test_duplicate_columns_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ImageFileError, match="two columns 'hospital'"):
        load_dataset(listed(tmp_path, "file,label,hospital,hospital\na.png,0,Nord,Ost\n", "a.png"))


def test_a_list_of_newlines_is_rejected_early(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.csv", "file,label\n" + "\n" * 50_000_000)
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(ImageFileError, match=r"labels\.csv.*10,000"):
        load_dataset(tmp_path / "a.zip")
    assert time.process_time() - start < 5
    assert tracemalloc.get_traced_memory()[1] < 250e6
    tracemalloc.stop()

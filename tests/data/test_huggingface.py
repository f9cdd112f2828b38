"""Hugging Face datasets, where the package is installed."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import AssetError, ImageFileError, MissingExtraError, OptionError
from beaufort.data import Problem, iterate, load_dataset
from beaufort.data.huggingface import _Column


def png(value: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (20, 18), value).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*'beaufort\[hf\]'"):
        load_dataset(f"hf:{tmp_path}")


@pytest.fixture
def hf() -> Any:
    return pytest.importorskip("datasets")


def test_splits_and_columns(hf: Any, tmp_path: Path) -> None:
    features = hf.Features(
        {"img": hf.Image(), "fine": hf.ClassLabel(names=["a", "b"]), "note": hf.Value("string")}
    )
    rows = {"img": [{"bytes": png(i)} for i in range(3)], "fine": [1, 0, 1], "note": list("xyz")}
    whole = hf.Dataset.from_dict(rows, features=features)
    hf.DatasetDict({"test": whole, "val": whole.select([2, 0])}).save_to_disk(str(tmp_path / "s"))
    dataset = load_dataset(tmp_path / "s")
    assert (dataset.classes, dataset.labels.tolist()) == (("a", "b"), [1, 0, 1])
    assert (dataset[2].image.shape, dataset[2].image.max()) == ((18, 20, 1), 2)
    other = load_dataset(f"hf:{tmp_path}/s#val")
    assert (other.ids[1], other[0].image.max()) == ("val/1", 2)
    assert len({dataset.digest(), other.digest()}) == 2
    with pytest.raises(OptionError, match="available: test, val"):
        load_dataset(f"hf:{tmp_path}/s#train")


def test_bad_rows_and_columns(hf: Any, tmp_path: Path) -> None:
    features = hf.Features({"image": hf.Image(), "label": hf.Value("int64")})
    rows = {"image": [{"bytes": png(1)}, {"bytes": b"junk"}, None], "label": [0, 1, 2]}
    hf.Dataset.from_dict(rows, features=features).save_to_disk(str(tmp_path / "s"))
    items = list(iterate(load_dataset(tmp_path / "s")))
    assert [isinstance(item, Problem) for item in items] == [False, True, True]
    assert len(load_dataset(tmp_path / "s").digest()) == 64
    hf.Dataset.from_dict({"x": np.arange(3)}).save_to_disk(str(tmp_path / "t"))
    with pytest.raises(ImageFileError, match=r"image.* img\b.* x\b"):
        load_dataset(tmp_path / "t")


def test_offline_mode_makes_no_requests(hf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_OFFLINE", "1")
    with pytest.raises(AssetError, match="BEAUFORT_OFFLINE"):
        load_dataset("hf:nobody/nothing#test")


def test_rows_name_files_of_the_dataset_only(tmp_path: Path) -> None:
    for place in ("data/a.png", "other.png"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_bytes(png(1))
    (tmp_path / "data" / "link.png").symlink_to(tmp_path / "other.png")
    names = ["data/a.png", "other.png", "data/../other.png", "data/link.png", "a\0b"]
    rows = [{"image": {"path": str(tmp_path / name)}} for name in names]
    column = _Column(rows, "image", (tmp_path / "data",))
    assert column.read(0).shape == (18, 20, 1)
    for index in range(1, len(rows)):
        with pytest.raises(ImageFileError, match=r"outside|cannot read"):
            column.read(index)

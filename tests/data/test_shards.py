"""webdataset shards, read in place."""

from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data import load_dataset
from beaufort.data.shards import expand

BUFFER = io.BytesIO()
Image.new("RGB", (20, 20), "red").save(BUFFER, "PNG")
PNG = BUFFER.getvalue()
PAIR = {"a.png": PNG, "a.cls": b"1\n"}


def shard(path: Path, files: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def test_order_and_keys(tmp_path: Path) -> None:
    files = {
        "x/b.PNG": PNG,
        "x/b.cls": b"2",
        "x/b.json": b"{}",
        "x/a.seg.png": PNG,
        "a.cls": b"0",
        "a.jpg": PNG,
    }
    dataset = load_dataset(shard(tmp_path / "s.tar", files))
    assert (dataset.ids, dataset.labels.tolist()) == (["s.tar/x/b", "s.tar/a"], [2, 0])
    assert [problem.id for problem in dataset.problems] == ["s.tar/x/a"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"b.png": PNG}, "no .cls file"),
        ({"b.cls": b"1"}, "must have one image, got 0"),
        ({"b.png": PNG, "b.jpg": PNG, "b.cls": b"1"}, "must have one image, got 2"),
        ({"b.png": PNG, "b.cls": b"one"}, "b'one'"),
        ({"b.png": PNG, "b.cls": b"-1"}, "b'-1'"),
        ({"../b.png": PNG}, "leads out"),
        ({"/b.png": PNG}, "leads out"),
    ],
)
def test_incomplete_samples_are_reported(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    path = shard(tmp_path / "s.tar", {**files, **PAIR})
    dataset = load_dataset(path)
    assert dataset.ids == ["s.tar/a"]
    assert message in dataset.problems[0].message
    with pytest.raises(ImageFileError, match=r"s\.tar/"):
        load_dataset(path, strict=True)


def test_links_are_not_followed(tmp_path: Path) -> None:
    path = shard(tmp_path / "s.tar", PAIR)
    with tarfile.open(path, "a") as archive:
        info = tarfile.TarInfo("b.png")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    assert [problem.id for problem in load_dataset(path).problems] == ["s.tar/b.png"]


@pytest.mark.parametrize("kept", [512 * 3, 512 * 3 + 100, 512 * 4, 512 * 4 + 3])
def test_truncated_shards_are_reported(tmp_path: Path, kept: int) -> None:
    assert len(PNG) < 512
    path = shard(tmp_path / "s.tar", {"a.png": PNG, "a.cls": b"1", "b.png": PNG, "b.cls": b"1"})
    path.write_bytes(path.read_bytes()[: kept + 512])
    dataset = load_dataset(path)
    assert dataset.ids == ["s.tar/a"]
    assert any("truncated" in problem.message for problem in dataset.problems)


def test_a_damaged_header_is_reported(tmp_path: Path) -> None:
    path = shard(tmp_path / "s.tar", {**PAIR, "b.png": PNG, "b.cls": b"1"})
    content = bytearray(path.read_bytes())
    content[4 * 512 + 5] ^= 0xFF
    path.write_bytes(content)
    assert "header" in load_dataset(path).problems[0].message


def test_compressed_tars_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ImageFileError, match="uncompressed"):
        load_dataset(f"wds:{shard(tmp_path / 's.tar.gz', PAIR, 'w:gz')}")
    (tmp_path / "t.tar").write_bytes(b"")
    with pytest.raises(ImageFileError, match="truncated"):
        load_dataset(tmp_path / "t.tar")


def test_folders_and_missing_shards(tmp_path: Path) -> None:
    for i in (1, 0):
        shard(tmp_path / f"v-{i}.tar", PAIR)
    assert load_dataset(tmp_path).ids == ["v-0.tar/a", "v-1.tar/a"]
    assert len(load_dataset(f"{tmp_path}/v-{{0..1}}.tar")) == 2
    with pytest.raises(OptionError, match="1 of 3 shards"):
        load_dataset(f"wds:{tmp_path}/v-{{0..2}}.tar")
    for i in (0, 1):
        (tmp_path / f"part{i}").mkdir()
        shard(tmp_path / f"part{i}" / "v.tar", PAIR)
    with pytest.raises(OptionError, match="the same file name"):
        load_dataset(f"wds:{tmp_path}/part{{0..1}}/v.tar")


@given(st.integers(0, 200), st.integers(0, 30), st.integers(1, 6))
def test_ranges(first: int, more: int, width: int) -> None:
    found = expand(f"d/s-{{{first:0{width}}..{first + more:0{width}}}}.tar")
    assert [path.name for path in found] == [f"s-{i:0{width}}.tar" for i in range(first, first + more + 1)]


def test_a_range_backwards() -> None:
    with pytest.raises(OptionError, match="got 0 for 's-"):
        expand("s-{3..1}.tar")


def test_patterns_of_very_many_shards_are_rejected_at_once() -> None:
    start = time.process_time()
    for pattern in ("{0..999}{0..999}", "{0..99999999999}", "{0..99}{0..99}{0..99}{0..99}"):
        with pytest.raises(OptionError, match="1 to 100,000 shards"):
            load_dataset(f"wds:{pattern}.tar")
    assert time.process_time() - start < 1
    assert len(expand("{0..9}-{00..09}.tar")) == 100

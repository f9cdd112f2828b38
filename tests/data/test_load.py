"""Opening datasets by spec."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.data import _digest, dataset_kind, load_dataset, readers


def classes(root: Path) -> Path:
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
        Image.new("L", (16, 16)).save(root / name / "1.png")
    return root


def test_missing_paths_and_names() -> None:
    with pytest.raises(OptionError, match="mean 'mnist-test'"):
        load_dataset("mnist-tset")
    with pytest.raises(OptionError, match=r"'MNIST-Test'.*'mnist-test'"):
        load_dataset("MNIST-Test")
    with pytest.raises(OptionError, match=r"'icons-50'.*'icons-50:PATH'"):
        load_dataset("icons-50")
    with pytest.raises(OptionError, match="mean 'mnist:/somewhere'"):
        load_dataset("mnsit:/somewhere")
    with pytest.raises(OptionError, match=r"not found: 'somewhere/else'.*ls datasets"):
        load_dataset("somewhere/else")
    with pytest.raises(OptionError, match="not a dataset"):
        load_dataset("frost")
    for nothing in ("", "folder:", "#test"):
        with pytest.raises(OptionError, match=f"not found: '{nothing}'"):
            load_dataset(nothing)


@pytest.mark.parametrize(
    ("files", "has", "nearest"),
    [
        ([], "an empty directory", "folder"),
        (["a.jpg", "b.png", "notes.txt"], "2 × image, 1 × txt", "folder"),
        (["pixels.npz", "a.csv", "b.csv"], "2 × csv, 1 × npz", "npz"),
        (["x_test.npy"], "1 × npy", "npy"),
        (["data_batch_1.bin"], "1 × bin", "cifar"),
    ],
)
def test_an_unknown_folder_gets_a_short_list_of_guesses(
    tmp_path: Path, files: list[str], has: str, nearest: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(OptionError) as caught:
        load_dataset(tmp_path)
    first, *guesses, last = str(caught.value).splitlines()
    assert has in first
    assert 1 <= len(guesses) <= 3
    assert guesses[0] == f"  {nearest}: {readers[nearest].looks_like}"
    assert "beaufort ls datasets" in last
    assert dataset_kind(tmp_path) is None


def test_a_file_of_no_known_kind(tmp_path: Path) -> None:
    (tmp_path / "notes.docx").touch()
    with pytest.raises(OptionError, match=r"\.docx\b.*not a dataset.*\n *folder:"):
        load_dataset(tmp_path / "notes.docx")


@pytest.mark.parametrize("kind", [kind for kind in readers if kind != "hf"])
def test_every_kind_rejects_an_empty_folder(tmp_path: Path, kind: str) -> None:
    with pytest.raises((OptionError, OSError)):
        load_dataset(f"{kind}:{tmp_path}#fog@3")
    with pytest.raises((OptionError, OSError)):
        load_dataset(f"{kind}:{tmp_path}/absent")


def test_a_path_with_a_number_sign(tmp_path: Path) -> None:
    assert len(load_dataset(classes(tmp_path / "set #2"))) == 2
    assert load_dataset(tmp_path / "set #2").name == "set-2"


def test_paths_take_precedence_over_unknown_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes(tmp_path / "my:data")
    monkeypatch.chdir(tmp_path)
    assert len(load_dataset("my:data")) == 2
    monkeypatch.chdir(tmp_path / "my:data")
    assert load_dataset(".").name == "my-data"


FORMS = {
    "x.npz": [b"PK\3\4"],
    "x.tar": [b"a.png" + bytes(95), bytes(512)],
    "x.zip": [b"PK\3\4", b"PK\5\6" + bytes(18)],
    "labels.csv": [b"file,label\n", b"file,label,zip\na.png,0,x.zip\n"],
    "images.npy": [b"\x93NUMPY\1\0v\0{'descr': '|u1', 'fortran_order': False, 'shape': ("],
    "t10k-images-idx3-ubyte": [bytes([0, 0, 8, 3]), b"\x1f\x8b"],
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(form=st.sampled_from(sorted(FORMS)), data=st.data())
def test_random_bytes_are_rejected_with_the_usual_error(
    tmp_path: Path, form: str, data: st.DataObject
) -> None:
    start = data.draw(st.sampled_from([b"", *FORMS[form]]))
    path = tmp_path / form
    path.write_bytes(start + data.draw(st.binary(max_size=600)))
    kind = {"x.npz": "npz", "x.tar": "wds", "x.zip": "csv", "labels.csv": "csv", "images.npy": "npy"}.get(
        form
    )
    try:
        load_dataset(f"{kind}:{path}" if kind else f"mnist:{tmp_path}").digest()
    except BeaufortError:
        pass
    finally:
        path.unlink()


def older(root: Path) -> None:
    """Make files look old."""
    for path in root.rglob("*.png"):
        os.utime(path, (1e9, 1e9))


def test_a_second_digest_reads_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older(classes(tmp_path / "d"))
    real = time.time_ns
    monkeypatch.setattr("beaufort.data._digest.time.time_ns", lambda: real() + 10**11)
    dataset = load_dataset(tmp_path / "d")
    first = dataset.digest()
    read: list[Path] = []
    chunks = _digest.chunks_of

    def noted(path: Path) -> Iterator[bytes]:
        read.append(path)
        return chunks(path)

    monkeypatch.setattr("beaufort.data._files.chunks_of", noted)
    assert dataset.digest() == first
    assert read == []
    assert dataset.digest(fresh=True) == first
    assert len(read) == 2
    path = tmp_path / "d" / "a" / "1.png"
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    older(tmp_path / "d")  # the size and the time of the change are as before, and still
    assert dataset.digest() != first


def test_recently_changed_files_are_not_cached(tmp_path: Path) -> None:
    dataset = load_dataset(classes(tmp_path / "d"))
    first = dataset.digest()
    Image.fromarray(np.full((16, 16), 3, np.uint8)).save(tmp_path / "d" / "a" / "1.png")
    assert dataset.digest() != first


def test_an_unusable_hash_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = load_dataset(classes(tmp_path / "d"))
    first = dataset.digest()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "digests.sqlite").write_bytes(b"no database" * 100)
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "broken"))
    assert dataset.digest() == first
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "file"))
    assert dataset.digest() == first

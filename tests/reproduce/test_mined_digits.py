"""The whole study of mined digits, as a rehearsal."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; the extra mining has it")
pytest.importorskip("diffusers", reason="diffusers is not installed; the extra mining has it")

from beaufort.datasets import open_dataset
from beaufort.errors import OptionError
from beaufort.reproduce import reproduce
from beaufort.reproduce.mined_digits.nets import NETS
from beaufort.reproduce.mined_digits.painting import PAIRS, paint
from beaufort.reproduce.mined_digits.work import SURROGATES


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return gzip.compress(head + array.astype(np.uint8).tobytes())


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """Squares of ten sizes, in MNIST's files."""
    labels = np.arange(60) % 10
    images = np.zeros((60, 28, 28), np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[4 : 8 + 2 * label, 4 : 8 + 2 * label] = 255
    folder = tmp_path / "mnist"
    folder.mkdir()
    (folder / "train-images-idx3-ubyte.gz").write_bytes(idx(images))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(idx(labels))
    return folder


def test_every_digit_meets_every_nuisance() -> None:
    digits = np.full((400, 28, 28), 255, np.uint8)
    labels = np.arange(400) % 10
    images, places = paint(digits, labels)
    assert images.shape == (400, 32, 32, 3)
    assert {PAIRS[place].category for place in places} == set("0123456789")
    assert all(PAIRS[place].category == str(label) for place, label in zip(places, labels, strict=True))
    assert len({PAIRS[place].nuisance for place in places}) == 10
    again, _ = paint(digits, labels)
    assert (images == again).all()
    assert (images != paint(digits, labels, seed=1)[0]).any()


def test_a_rehearsal(mnist: Path, tmp_path: Path) -> None:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    out = tmp_path / "out"
    told: list[str] = []
    try:
        done = reproduce(
            "mined-digits", out, data={"mnist": str(mnist)}, device="cpu", rehearse=True, tell=told.append
        )
    finally:
        torch.set_num_threads(threads)
    assert done.finished
    assert done.done == 1 + len(NETS) + 3 + 5
    assert told[done.done :] == ["README.md written", "samples.png written"]
    readme = (out / "README.md").read_text()
    assert "A rehearsal: the numbers mean nothing" in readme
    assert all(f"| {name} | {'surrogate' if name in SURROGATES else ''} |" in readme for name in NETS)
    assert "in the place of people" in readme
    assert len(open_dataset(out / "set")) > 0
    assert (out / "samples.png").is_file()
    again = reproduce("mined-digits", out, data={"mnist": str(mnist)}, device="cpu", rehearse=True)
    assert again.done == 0
    with pytest.raises(OptionError, match="holds a rehearsal"):
        reproduce("mined-digits", out, data={"mnist": str(mnist)}, device="cpu")
    with pytest.raises(OptionError, match=r"parts of mined-digits \(train, images, mine\), got 'fig2'"):
        reproduce("mined-digits", out, only=["fig2"], rehearse=True)

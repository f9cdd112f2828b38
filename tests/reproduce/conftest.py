"""Digits in idx files, so that a study can be rehearsed without any download."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; the extra training has it")
pytest.importorskip("safetensors", reason="safetensors is not installed; the extra training has it")


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like MNIST's, with 300 + 60 bars of ten kinds."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("digits")
    rng = np.random.default_rng(0)
    for prefix, count in (("train", 300), ("t10k", 60)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        images = rng.integers(0, 40, (count, 28, 28), np.uint8)
        for image, label in zip(images, labels, strict=True):
            row, column = divmod(int(label), 5)
            image[4 + 12 * row : 12 + 12 * row, 1 + 5 * column : 6 + 5 * column] = 230
        head = np.array([0x803, count, 28, 28], ">u4").tobytes()
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes()))
        head = np.array([0x801, count], ">u4").tobytes()
        (folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(head + labels.tobytes()))
    return folder


@pytest.fixture(scope="session")
def rehearsed(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole rehearsal with two seeds."""
    from beaufort.reproduce import reproduce

    folder = tmp_path_factory.mktemp("study")
    outcome = reproduce("mnist-c", folder, data={"mnist": str(digits)}, device="cpu", seeds=2, rehearse=True)
    assert outcome.finished
    return folder

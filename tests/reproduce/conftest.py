"""Digits in idx files, so that a study can be rehearsed without any download."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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


@pytest.fixture(scope="session")
def icons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an `icons50_32.npz`: two icons of each class by three vendors, one in two renditions."""
    from beaufort.labels import class_names

    torch.set_num_threads(1)
    held_out = {"bird": "duck", "books": "ledger", "monkey": "monkey_face", "heart": "broken_heart"}
    classes = list(class_names("icons-50"))
    rng = np.random.default_rng(0)
    images, labels, names = [], [], []
    for label, name in enumerate(classes):
        for style in ("apple", "microsoft", "twitter"):
            for version, subtype in (
                (0, f"plain_{name}"),
                (2, f"plain_{name}"),
                (0, held_out.get(name, "other")),
            ):
                image = rng.integers(0, 60, (32, 32, 3), np.uint8)
                row, column = divmod(label, 10)
                image[2 + 6 * row : 8 + 6 * row, 1 + 3 * column : 4 + 3 * column] = 230
                images.append(image)
                labels.append(label)
                names.append(f"{style}_{version}_{subtype}.png")
    folder = tmp_path_factory.mktemp("icons")
    np.savez(folder / "icons50_32.npz", x=images, y=np.array(labels, np.uint8), classes=classes, fname=names)
    return folder


@pytest.fixture(scope="session")
def open_icons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like that of icons-open: two icons and a manifest."""
    folder = tmp_path_factory.mktemp("icons-open")
    lines = ["file,class,style,version,subtype,license,sha256"]
    for style, gray in (("noto", 80), ("openmoji", 160)):
        file = folder / "bird" / f"{style}_0_duck.png"
        file.parent.mkdir(exist_ok=True)
        Image.new("RGB", (120, 120), (gray,) * 3).save(file)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.append(f"bird/{file.name},bird,{style},0,duck,Apache-2.0,{digest}")
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session")
def rehearsed_icons(icons: Path, open_icons: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole rehearsal of Icons-50, and a second seed of some parts."""
    from beaufort.reproduce import reproduce

    folder = tmp_path_factory.mktemp("icons-study")
    data = {"icons-50": str(icons), "icons-open": str(open_icons)}
    assert reproduce("icons-50", folder, data=data, device="cpu", seeds=1, rehearse=True).finished
    again = reproduce(
        "icons-50", folder, data=data, only=["style", "shake"], device="cpu", seeds=2, rehearse=True
    )
    assert (again.done, again.there) == (9, 9)
    return folder

"""The photos that come with the package foolbox."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from beaufort._core import catalog
from beaufort._core.catalog import Asset, Entry, assets, entries
from beaufort._core.errors import AssetError
from beaufort.data import load_dataset
from beaufort.data.labels import class_names
from beaufort.models import load_model


def test_twenty_photos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real dataset, if a package index is available."""
    try:
        dataset = load_dataset("foolbox-imagenet-20", strict=True)
        model = load_model("demo:efficientnet-lite0")
    except AssetError as error:
        if "sha256 starts with" in str(error):
            raise
        pytest.skip(str(error))
    assert (dataset.name, len(dataset), dataset.classes) == (
        "foolbox-imagenet-20",
        20,
        class_names("imagenet-1k"),
    )
    assert dataset.ids[0] == "imagenet_00_243.jpg"
    assert dataset.classes[dataset[0].label] == "bull mastiff"
    assert dataset[0].image.shape == (512, 512, 3)
    order = np.stack(
        [(-model(sample.image[None])[0]).argsort() for sample in map(dataset.__getitem__, range(20))]
    )
    assert (order[:, 0] == dataset.labels).sum() >= 16
    assert (order[:, :5] == dataset.labels[:, None]).any(axis=1).sum() >= 18


class Given:
    place = "here"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def save(self, path: Path, progress: catalog.Progress) -> None:
        path.write_bytes(self.content)


@pytest.mark.parametrize(("space", "count"), [("", 4), ("imagenet-1k", 1000)])
def test_classes_of_a_label_space(monkeypatch: pytest.MonkeyPatch, space: str, count: int) -> None:
    content = b"file,label\na.png,3\n"
    asset = Asset(
        "few/labels.csv", hashlib.sha256(content).hexdigest(), "none", "these tests", [Given(content)]
    )
    entry = Entry("few", "", "none", "", "", (asset.name,), opens_as="csv", label_space=space)
    monkeypatch.setitem(assets._things, asset.name, asset)
    monkeypatch.setitem(entries._things, entry.name, entry)
    assert len(load_dataset("few").classes) == count

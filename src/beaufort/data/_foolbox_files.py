"""Twenty labeled photos in the catalog: those that the package foolbox brings along for its examples."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

from beaufort._core.catalog import Asset, Entry, Wheel, assets, entries

_NAME = "foolbox-imagenet-20"
_PACKAGE, _VERSION = "foolbox", "3.3.4"
_LICENSE = "MIT (of the package; it does not say whose the photos are)"
_ORIGIN = f"{_PACKAGE} {_VERSION} (Rauber et al.)"


class _File(NamedTuple):
    size: int
    sha256: str


_FILES = {
    "labels.csv": _File(487, "3ccf5124d1c4b99cc0960c48808b19538a96f395632955d503b5d6ede3ab418e"),
    "imagenet_00_243.jpg": _File(86_225, "28b7b933c8028c6e20bf74a86a709eda42ce99f14c8742cb657cb386f08a4c9d"),
    "imagenet_01_559.jpg": _File(60_981, "5f03b0c74dff01b5b4195d0beabcae2a625a406e6917957ab9c455b5b7dea6d6"),
    "imagenet_02_438.jpg": _File(38_174, "ccef0734c1a65549c6cb5adb0f5d9b1c0b2e2104aba50a9e5f9202dc6d4532ed"),
    "imagenet_03_990.jpg": _File(91_433, "c7f0b2f1e9ee39d8f900759e8983afa2e4a2d7de090060e8bb947f6e90cace5f"),
    "imagenet_04_949.jpg": _File(64_224, "a7f62f3c1d214de4718c7253871ab38209283249e131faf65b8f2b7fdc970669"),
    "imagenet_05_853.jpg": _File(82_330, "8a449436c61da867528b1f4efaf8ae832ab9c9201705eae0d3af1353fbdac131"),
    "imagenet_06_609.jpg": _File(91_478, "fb061102a4e58b3ed942bb2a4f9542e1e1acdc8f225ef95498e93889290e192f"),
    "imagenet_07_609.jpg": _File(93_555, "2c297ad1e5c4804a647e9b34bc02ee2fc348b05a4d49050d170fb61c948efa5c"),
    "imagenet_08_915.jpg": _File(92_322, "c6a3411a3987799f0de45adc142f00ca412c3e14073c635e2adfae1f3913180c"),
    "imagenet_09_455.jpg": _File(130_424, "ace3716b60ac5843269b270e17020e4f8138440cd30ef3487f7d6e54da9745a4"),
    "imagenet_10_541.jpg": _File(99_497, "f325c71d9f4290ee45e99bd7ad42f4bffe513b1450ad21e7bd61c7cb137395d9"),
    "imagenet_11_630.jpg": _File(27_498, "892dff58fc528fe63d2df0c783aa3eca2342637798578ce01763fbc0553eda01"),
    "imagenet_12_741.jpg": _File(112_576, "6c256e17545b25bbf2e06cf6513ff48d049583569515ac4d4c3a52aea804a529"),
    "imagenet_13_471.jpg": _File(72_748, "52ed0e738b90d27afcabc3e92c81ae637f160c2d9f75b93a65211005ab5dcd81"),
    "imagenet_14_129.jpg": _File(18_186, "ad9371d813bf24b0365ee2f78f28c08718ee7c5975f060caa16c3f264e828139"),
    "imagenet_15_99.jpg": _File(111_008, "4b588649cd835d4c65521727ebee03d9621baff1f54d3e8a53a26b53d983ec2e"),
    "imagenet_16_251.jpg": _File(73_665, "ce3440a3b7beb6ca3009817504c44d39fa789e7c2f70a2eef7e2f9cc9a87b129"),
    "imagenet_17_22.jpg": _File(30_745, "b432341845620e9cfd67d848c4783c32dd6eaddad45513866b17180d2b09fcf5"),
    "imagenet_18_317.jpg": _File(35_421, "b9412f92f0b1c3faede45b55a44940977daa744f2040118d0538cf597fca785d"),
    "imagenet_19_305.jpg": _File(38_110, "e1f58f00e2e47ce930d7ecab0e46a78316054f68c10d0742e87c1cc092324556"),
}


def labels_from_record(content: bytes) -> bytes:
    r"""The list of photos and labels that follows from the list of files of the package.

    A photo's label, a class number of ImageNet-1k, is the last part of its name.

    >>> labels_from_record(b"foolbox/data/imagenet_00_243.jpg,sha256=x,1\nfoolbox/plot.py,sha256=y,2\n")
    b'file,label\nimagenet_00_243.jpg,243\n'
    """
    paths = [row[0] for row in csv.reader(io.StringIO(content.decode())) if row]
    names = sorted(path.rpartition("/")[2] for path in paths if path.startswith("foolbox/data/imagenet_"))
    rows = [f"{name},{name.removesuffix('.jpg').rpartition('_')[2]}" for name in names]
    return "\n".join(["file,label", *rows, ""]).encode()


def _register() -> None:
    requirement = f"{_PACKAGE}=={_VERSION}"
    for name, file in _FILES.items():
        source = Wheel(requirement, f"{_PACKAGE}/data/{name}")
        if name == "labels.csv":
            source = Wheel(requirement, f"{_PACKAGE}-{_VERSION}.dist-info/RECORD", labels_from_record)
        asset = Asset(f"{_NAME}/{name}", file.sha256, _LICENSE, _ORIGIN, [source], size=file.size)
        assets.register(asset.name, asset)
    entry = Entry(
        _NAME,
        "20 photos with labels of ImageNet-1k: too few to measure with, enough to try things out",
        _LICENSE,
        _ORIGIN,
        "https://github.com/bethgelab/foolbox",
        tuple(f"{_NAME}/{name}" for name in _FILES),
        opens_as="csv",
        label_space="imagenet-1k",
    )
    entries.register(entry.name, entry)


_register()

"""Small data for every study, so that it can be rehearsed without any download, and a rehearsal of each."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort.testing._contracts import example_image
from tests.studies.rehearsal import Rehearsal

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
def icons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an `icons50_32.npz`: two icons of each class by three vendors, one in two renditions."""
    from beaufort.data.labels import class_names

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
    lines = ["file,class,style,version,subtype,package,license,sha256"]
    for style, gray in (("noto", 80), ("openmoji", 160)):
        file = folder / "bird" / f"{style}_0_duck.png"
        file.parent.mkdir(exist_ok=True)
        Image.new("RGB", (120, 120), (gray,) * 3).save(file)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.append(f"bird/{file.name},bird,{style},0,duck,@iconify-json/{style},Apache-2.0,{digest}")
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session")
def photos_and_cifar(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Photos in folders of classes, two networks of a thousand classes, and CIFAR-10 of a few images."""
    from torch import nn

    from beaufort.data.labels import class_names
    from beaufort.training.export import onnx_of

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("photos-and-cifar")
    wnids = list(class_names("imagenet-1k"))[:3]
    for number, name in enumerate(wnids):
        place = folder / "photos" / name.replace("/", "-")
        place.mkdir(parents=True)
        for one in range(2):
            Image.fromarray(example_image(260, 270, 3, variant=2 * number + one)).save(place / f"{one}.png")
    (folder / "networks").mkdir()
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 4, 9, 8)
    net = nn.Sequential(conv, nn.ReLU(), nn.MaxPool2d(3), nn.Flatten(), nn.Linear(324, 1000))
    for name in ("tiny", "tinier"):
        nn.init.normal_(conv.weight)
        (folder / "networks" / f"{name}.onnx").write_bytes(onnx_of(net.eval(), (3, 224, 224)))
    (folder / "cifar").mkdir()
    for split, count in (("train", 100), ("test", 24)):
        images = np.stack([example_image(32, 32, 3, variant=i) for i in range(count)]).reshape(count, 1024, 3)
        labels = [i % 10 for i in range(count)]
        names = ["test_batch.png"] if split == "test" else [f"data_batch_{i}.png" for i in range(1, 6)]
        for name, part in zip(names, np.array_split(images, len(names)), strict=True):
            Image.fromarray(np.ascontiguousarray(part)).save(folder / "cifar" / name)
        (folder / "cifar" / f"{split}_lables.json").write_text(json.dumps(labels))
    return {
        "imagenet": str(folder / "photos"),
        "networks": str(folder / "networks"),
        "cifar10": f"cifar:{folder / 'cifar'}",
    }


@pytest.fixture(scope="session")
def mnist_c(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    """With two seeds."""
    made = Rehearsal("mnist-c", tmp_path_factory.mktemp("mnist-c"), {"mnist": str(digits)}, seeds=2)
    assert made.again().finished
    return made


@pytest.fixture(scope="session")
def icons_50(icons: Path, open_icons: Path, tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    """With one seed, and a second one of some parts."""
    data = {"icons-50": str(icons), "icons-open": str(open_icons)}
    made = Rehearsal("icons-50", tmp_path_factory.mktemp("icons-50"), data)
    assert made.again().finished
    more = made.again(only=["style", "shake"], seeds=2)
    assert (more.done, more.there) == (9, 9)
    return made


@pytest.fixture(scope="session")
def stylizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stylization network after one training step, with random SqueezeNet features."""
    from beaufort.training import TrainingTensors, get_recipe, train
    from beaufort.training.stylization.network import _squeezenet_features

    folder = tmp_path_factory.mktemp("stylizer")
    torch.manual_seed(0)
    torch.save(_squeezenet_features().half().state_dict(), folder / "squeezenet.pth")
    images = torch.from_numpy(np.stack([example_image(64, 64, 3, variant=i) for i in range(2)])).permute(
        0, 3, 1, 2
    )
    photos = TrainingTensors("photos", ("photo",), images, torch.zeros(2, dtype=torch.long))
    options = {"styles": 2, "width": 4, "blocks": 1, "side": 64, "features": str(folder / "squeezenet.pth")}
    recipe = replace(get_recipe("stylizer"), architecture_options=options, epochs=1, batch=2)
    return train(recipe, photos, output=folder / "made", device="cpu").folder


@pytest.fixture(scope="session")
def enhancements(
    photos_and_cifar: dict[str, str], stylizer: Path, tmp_path_factory: pytest.TempPathFactory
) -> Rehearsal:
    folder = tmp_path_factory.mktemp("enhancements")
    made = Rehearsal("imagenet-c-enhancements", folder, photos_and_cifar)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEAUFORT_STYLIZER", str(stylizer))
        assert made.again().finished
    return made


@pytest.fixture(scope="session")
def mined_digits(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    pytest.importorskip("diffusers", reason="diffusers is not installed; the extra mining has it")
    made = Rehearsal("mined-digits", tmp_path_factory.mktemp("mined-digits"), {"mnist": str(digits)})
    assert made.again().finished
    return made

"""Held-out classes of superclasses: CIFAR-100 and ImageNet-22K, on stand-ins in the published layouts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import OptionError
from beaufort.data.labels import class_names, superclasses
from beaufort.studies import reproduce
from beaufort.studies.icons_50 import load_results, subtypes_of_cifar
from beaufort.studies.predictions import StudyPredictions, write_predictions

torch = pytest.importorskip("torch", reason="torch is not installed; the extra training has it")
pytest.importorskip("safetensors", reason="safetensors is not installed; the extra training has it")


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture
def cifar100(tmp_path: Path) -> Path:
    """CIFAR-100 in the binary layout, with two training images and one test image of each class."""
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    rng = np.random.default_rng(0)
    coarse = {
        name: label for label, one in enumerate(superclasses("cifar-100-coarse")) for name in one.members
    }
    for name, count in (("train", 2), ("test", 1)):
        rows = [
            bytes([coarse[fine], label]) + rng.integers(0, 256, 3072, np.uint8).tobytes()
            for _ in range(count)
            for label, fine in enumerate(class_names("cifar-100"))
        ]
        (folder / f"{name}.bin").write_bytes(b"".join(rows))
    return tmp_path


def test_classes_of_cifar_are_held_out(cifar100: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    out = tmp_path / "out"
    options: dict[str, Any] = {"device": "cpu", "seeds": 1, "rehearse": True}
    with pytest.raises(OptionError, match="--data cifar-100=PATH"):
        reproduce("icons-50", out, only=["cifar-100-subtypes"], **options)
    data = {"cifar-100": str(cifar100)}
    assert reproduce("icons-50", out, only=["cifar-100-subtypes"], data=data, **options).done == 4
    rows = table(out / "cifar-100-subtypes.csv")
    assert [row["tested on"] for row in rows if row["held out"] == "mean"] == [
        "held-out classes",
        "other classes",
    ]
    assert [row["paper"] for row in rows if row["held out"] == "mean"] == ["40.30", "86.80"]
    found = load_results(out).predictions
    for count in range(1, 5):
        held_out, others = (found["wrn40-2", f"cifar-100-{count}{end}"][0] for end in ("", "-seen"))
        assert held_out.predicted.shape[1] == min(20 * count, 40)  # a rehearsal has 40 test images
        assert others.facts["train_images"] == min(48, 200 - 40 * count)
    assert "Classes of CIFAR-100 left out of their superclass" in (out / "README.md").read_text()


def test_the_mean_over_classes_held_out_is_that_of_the_rows(tmp_path: Path) -> None:
    labels = (np.arange(400) % 20).astype(np.uint8)
    for count, accuracy in zip(range(1, 5), (0.5, 0.4, 0.3, 0.2), strict=True):
        for end, better in (("", 0.0), ("-seen", 0.4)):
            for seed in range(2):
                predicted = labels.copy()
                wrong = round(400 * (accuracy + better))
                predicted[wrong:] = (predicted[wrong:] + 1) % 20
                found = StudyPredictions(
                    (f"cifar-100-{count}{end}",), predicted[None], labels, {"seed": seed}
                )
                write_predictions(
                    tmp_path / "predictions" / f"wrn40-2@cifar-100-{count}{end}-seed{seed}.npz", found
                )
    mean = subtypes_of_cifar(load_results(tmp_path)).rows["mean"]
    assert mean["held-out classes"].value == pytest.approx(0.35)
    assert mean["other classes"].value == pytest.approx(0.75)
    assert mean["held-out classes"].low < 0.35 < mean["held-out classes"].high
    assert mean["held-out classes"].printed == pytest.approx(0.403)


@pytest.fixture
def imagenet_22k(tmp_path: Path) -> Path:
    """Directories named by WordNet id: two known and two other classes of each of three superclasses."""
    for label, one in enumerate(superclasses("imagenet-25")[:3]):
        for number, id in enumerate((*one.members[:2], *one.others[:2])):
            (tmp_path / id).mkdir()
            for place in range(12):
                rng = np.random.default_rng([label, number, place])
                image = rng.integers(0, 60, (230, 240, 3), np.uint8)
                image[..., label] += 150
                Image.fromarray(image).save(tmp_path / id / f"{id}_{place}.JPEG")
    return tmp_path


def test_a_last_layer_is_tested_on_classes_that_imagenet_1k_lacks(
    imagenet_22k: Path, photos_and_cifar: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("imagenet-22k")
    data = {"imagenet-22k": str(imagenet_22k)}
    with pytest.raises(OptionError, match="--data networks=PATH"):
        reproduce("icons-50", out / "none", only=["imagenet-22k"], data=data, device="cpu")
    data["networks"] = photos_and_cifar["networks"]
    assert reproduce("icons-50", out, only=["imagenet-22k"], data=data, device="cpu", seeds=1).done == 2
    rows = table(out / "imagenet-22k.csv")
    assert {row["tested on"] for row in rows} == {"classes of ImageNet-1k", "other classes"}
    found = load_results(out).predictions
    for name in ("tiny", "tinier"):
        seen, other = (found[name, f"imagenet-22k{end}"][0] for end in ("-seen", ""))
        assert (len(seen.labels), len(other.labels)) == (8, 72)
        assert set(other.labels) == {0, 1, 2}
    assert "| tiny |" in (out / "README.md").read_text()

"""A rehearsal of the study of enhancements makes every file, resumes, and its statistics are right."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from beaufort.errors import OptionError
from beaufort.labels import class_names
from beaufort.metrics import get_baseline
from beaufort.reproduce import reproduce
from beaufort.reproduce.answers import StudyAnswers
from beaufort.reproduce.enhancements.arms import BASE, CONTROL, training_arms
from beaufort.reproduce.enhancements.findings import find_all, load_arms
from beaufort.reproduce.enhancements.photos import PHOTO_ARMS
from beaufort.reproduce.enhancements.settings import CLEAN, DESIGNS, EnhancementSettings, conditions
from beaufort.reproduce.enhancements.statistics import (
    Normalizer,
    alexnet,
    difference,
    level_of,
    normalizer_of,
    shares_of,
)
from beaufort.reproduce.enhancements.study import plan
from beaufort.testing._contracts import picture
from beaufort.training.export import onnx_of

SMALL = EnhancementSettings(rehearse=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Photos in folders of classes, a network of a thousand classes, and CIFAR-10 of a few images."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("data")
    wnids = list(class_names("imagenet-1k"))[:3]
    for number, name in enumerate(wnids):
        place = folder / "photos" / name.replace("/", "-")
        place.mkdir(parents=True)
        for one in range(2):
            Image.fromarray(picture(260, 270, 3, variant=2 * number + one)).save(place / f"{one}.png")
    (folder / "networks").mkdir()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 9, 8), nn.ReLU(), nn.MaxPool2d(3), nn.Flatten(), nn.Linear(324, 1000))
    (folder / "networks" / "tiny.onnx").write_bytes(onnx_of(net.eval(), (3, 224, 224)))
    (folder / "cifar").mkdir()
    for split, count in (("train", 100), ("test", 24)):
        images = np.stack([picture(32, 32, 3, variant=i) for i in range(count)]).reshape(count, 1024, 3)
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


@pytest.fixture(scope="module")
def rehearsed(data: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    outcome = reproduce("imagenet-c-enhancements", folder, data=data, device="cpu", seeds=1, rehearse=True)
    assert outcome.finished
    return folder


def test_a_rehearsal_answers_every_question(rehearsed: Path) -> None:
    page = (rehearsed / "README.md").read_text(encoding="utf-8")
    html = (rehearsed / "index.html").read_text(encoding="utf-8")
    assert "its numbers mean nothing" in page
    assert "not run" not in page
    for design, question in DESIGNS.items():
        assert f"## {question}" in page
        assert question in html
        with (rehearsed / f"{design}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert {"clean error", "mCE"} <= {row["metric"] for row in rows}
        assert any(row["difference"] for row in rows)
        assert (rehearsed / f"{design}.svg").read_text(encoding="utf-8").startswith("<svg")
    arms = {path.stem for path in (rehearsed / "photos" / "tiny").glob("*.npz")}
    assert {"plain", "clahe", "ten-crop"} <= arms <= set(PHOTO_ARMS)


def test_nothing_is_made_again(rehearsed: Path, data: dict[str, str]) -> None:
    again = reproduce("imagenet-c-enhancements", rehearsed, data=data, device="cpu", seeds=1, rehearse=True)
    assert again.done == 0
    assert again.finished
    with pytest.raises(OptionError, match="holds a rehearsal"):
        reproduce("imagenet-c-enhancements", rehearsed, data=data, device="cpu")


def test_arms_are_read_as_they_were_answered(rehearsed: Path) -> None:
    arms = load_arms(rehearsed, SMALL)
    assert float(arms.cifar[BASE].rows["mCE"].mean()) == pytest.approx(100)  # it divides itself
    assert {"plain", "nlm-h0.8", "ten-crop"} <= set(arms.photos["tiny"])
    findings = find_all(arms)
    assert [one.design for one in findings] == list(DESIGNS)
    assert {one.verdict for one in findings} <= {"confirmed", "refuted", "undecided"}


def test_every_arm_has_its_control(data: dict[str, str]) -> None:
    settings = EnhancementSettings(seeds=2)
    arms = training_arms(settings)
    names = [arm.name for group in arms.values() for arm in group]
    assert len(set(names)) == len(names)
    for group in arms.values():
        for arm in group:
            assert not arm.start or arm.start in names
            arm.made(settings, "")  # a recipe that can be read
    assert sum(arm.name.startswith("stability-") for arm in arms["stability"]) == 11
    assert sum(arm.name.startswith("on-") for arm in arms["transfer"]) == 17
    for design in ("stability", "transfer", "clahe", "augmentation"):
        files = [task.file for phase in plan(settings, (design,)) for task in phase]
        assert f"cifar/{CONTROL}-seed0.npz" in files
        assert len(set(files)) == len(files)
    ten = [task.file for phase in plan(settings, ("ten-crop",)) for task in phase]
    assert ten == [
        *(f"cifar/{BASE}-seed{seed}.npz" for seed in (0, 1)),
        *(f"cifar/ten-crop-seed{seed}.npz" for seed in (0, 1)),
    ]


def answers(seed: int, worse: float = 0.0) -> StudyAnswers:
    rng = np.random.default_rng(seed)
    names = conditions(SMALL)
    hard = np.linspace(0.1, 0.6, len(names))[:, None] + worse
    right = (rng.random((len(names), 400)) > hard).astype(np.uint8)
    return StudyAnswers(names, right, np.ones(400, np.uint8), {})


def test_shares_add_up_to_the_metrics() -> None:
    base, own = answers(0), answers(1)
    shares = shares_of([own], normalizer_of(base), SMALL)
    wrong, other = (1 - one.right.mean(axis=1) for one in (own, base))
    rows = {
        name: [i for i, c in enumerate(own.conditions) if c.startswith(f"{name}@")]
        for name in SMALL.corruptions
    }
    ces = [wrong[rows[name]].sum() / other[rows[name]].sum() for name in SMALL.corruptions]
    assert level_of(shares, "mCE").value == pytest.approx(100 * np.mean(ces))
    assert level_of(shares, "clean error").value == pytest.approx(100 * wrong[own.conditions.index(CLEAN)])
    relative = [
        (wrong[rows[name]] - wrong[0]).sum() / (other[rows[name]] - other[0]).sum()
        for name in SMALL.corruptions
    ]
    assert level_of(shares, "relative mCE").value == pytest.approx(100 * np.mean(relative))


def test_differences_are_paired_and_cover_seeds() -> None:
    base = normalizer_of(answers(0))
    assert isinstance(base, Normalizer)
    controls, arms = ([answers(seed, shift) for seed in range(3)] for shift in (0.0, 0.1))
    one, other = shares_of(controls, base, SMALL), shares_of(arms, base, SMALL)
    worse = difference(one, other)
    assert worse.low > 0
    assert worse.low < worse.value < worse.high
    same = difference(one, one)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    backwards = difference(other, one)
    assert backwards.value == pytest.approx(-worse.value)


def test_the_published_errors_of_alexnet_divide() -> None:
    whole = alexnet(EnhancementSettings())
    known = get_baseline("alexnet")
    fog = known.select(["fog"], (1, 2, 3, 4, 5))["fog"]
    assert whole.sums["fog"] == pytest.approx(np.sum(fog))
    mean = known.select(["spatter"], (1, 2, 3, 4, 5))["spatter"]
    assert whole.sums["spatter"] == pytest.approx(5 * float(np.asarray(mean, float).mean()))
    assert alexnet(SMALL).sums["contrast"] < 1 < whole.sums["contrast"]


def test_slips_are_told(data: dict[str, str], tmp_path: Path) -> None:
    for options, told in (
        ({"only": ["clahee"]}, "only must name parts of imagenet-c-enhancements"),
        (
            {"data": {"mnist": "x"}},
            "data must be given as imagenet=FOLDER or networks=FOLDER or cifar10=F",
        ),
        ({"data": {"imagenet": "/nowhere"}}, "photos must be a place that exists, got '/nowhere'"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
    ):
        with pytest.raises(OptionError, match=told):
            reproduce("imagenet-c-enhancements", tmp_path, rehearse=True, **options)

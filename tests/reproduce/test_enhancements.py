"""A rehearsal of the study of enhancements makes every file, and its statistics are right."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from beaufort.errors import OptionError
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
from tests.reproduce.rehearsal import Rehearsal

pytestmark = pytest.mark.xdist_group("imagenet-c-enhancements")

SMALL = EnhancementSettings(rehearse=True)


def test_a_rehearsal_answers_every_question(enhancements: Rehearsal) -> None:
    page = (enhancements.folder / "README.md").read_text(encoding="utf-8")
    html = (enhancements.folder / "index.html").read_text(encoding="utf-8")
    assert "its numbers mean nothing" in page
    assert "not run" not in page
    for design, question in DESIGNS.items():
        assert f"## {question}" in page
        assert question in html
        with (enhancements.folder / f"{design}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert {"clean error", "mCE"} <= {row["metric"] for row in rows}
        assert any(row["difference"] for row in rows)
        assert (enhancements.folder / f"{design}.svg").read_text(encoding="utf-8").startswith("<svg")
    arms = {path.stem for path in (enhancements.folder / "photos" / "tiny").glob("*.npz")}
    assert {"plain", "clahe", "ten-crop"} <= arms <= set(PHOTO_ARMS)


def test_arms_are_read_as_they_were_answered(enhancements: Rehearsal) -> None:
    arms = load_arms(enhancements.folder, SMALL)
    assert float(arms.cifar[BASE].rows["mCE"].mean()) == pytest.approx(100)  # it divides itself
    assert {"plain", "nlm-h0.8", "ten-crop"} <= set(arms.photos["tiny"])
    findings = find_all(arms)
    assert [one.design for one in findings] == list(DESIGNS)
    assert {one.verdict for one in findings} <= {"confirmed", "refuted", "undecided"}


def test_every_arm_has_its_control() -> None:
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


def test_data_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="photos must be a place that exists, got '/nowhere'"):
        reproduce("imagenet-c-enhancements", tmp_path, data={"imagenet": "/nowhere"}, rehearse=True)

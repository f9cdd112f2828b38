"""Verdicts on synthetic predictions with known effects, and studies of one's own from a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.cli import app
from beaufort.metrics.stats import Estimate, paired_interval
from beaufort.studies import new_study, reproduce
from beaufort.studies.predictions import StudyPredictions, write_predictions
from beaufort.studies.verdicts import Requirement, decide
from tests.commands import shows

IMAGES = 300


def measured(effect: float, seed: int, runs: int = 2, bound: float = 0.0, sign: Any = "<") -> Requirement:
    """The mean of paired differences in correctness, whose true mean is known, against a bound."""
    values = np.random.default_rng(seed).choice(
        [-1, 0, 1], IMAGES, p=[0.1 - effect / 2, 0.8, 0.1 + effect / 2]
    )
    return Requirement(lambda level: paired_interval(values, level=level), sign, bound, runs)


def verdicts(effects: Sequence[float], repeats: int = 200, **options: Any) -> dict[str, float]:
    """How often each verdict on "all effects are above 0" is reached."""
    found = []
    for repeat in range(repeats):
        both = [
            [measured(one, repeat * 100 + place, sign=sign) for place, one in enumerate(effects)]
            for sign in "><"
        ]
        found.append(decide(both[0], both[1], **options))
    return {name: found.count(name) / repeats for name in ("confirmed", "refuted", "undecided")}


def test_a_clear_effect_is_found() -> None:
    assert verdicts([0.15]) == {"confirmed": 1, "refuted": 0, "undecided": 0}
    assert verdicts([-0.15]) == {"confirmed": 0, "refuted": 1, "undecided": 0}


def test_no_effect_is_rarely_called_one_however_many_are_compared() -> None:
    for count in (1, 10):
        found = verdicts([0.0] * count)
        assert found["refuted"] <= 0.05
        assert found["confirmed"] <= 0.05
    uncorrected = [
        any(measured(0.0, repeat * 100 + place).holds() for place in range(10)) for repeat in range(200)
    ]
    assert np.mean(uncorrected) > 0.1  # what the correction is for


def test_one_effect_among_many_refutes() -> None:
    assert verdicts([0.1] * 9 + [-0.2], repeats=30)["refuted"] == 1
    assert verdicts([0.1] * 9 + [-0.2], repeats=30, together=True)["refuted"] == 0


def test_an_absent_effect_requires_a_margin() -> None:
    def verdict(effect: float, margin: float, seed: int) -> str:
        return decide(
            [measured(effect, seed, bound=margin), measured(effect, seed, bound=-margin, sign=">")],
            [measured(effect, seed, bound=margin, sign=">"), measured(effect, seed, bound=-margin)],
        )

    assert [verdict(0.0, 0.12, seed) for seed in range(20)].count("confirmed") >= 19
    assert {verdict(0.0, 0.02, seed) for seed in range(20)} == {"undecided"}  # too few images for this margin
    assert {verdict(0.2, 0.02, seed) for seed in range(20)} == {"refuted"}


def test_one_run_and_missing_arms_decide_nothing() -> None:
    clear = Estimate(0.3, 0.2, 0.4, IMAGES)
    assert decide([Requirement(clear, ">", 0, 2)], [Requirement(clear, "<", 0, 2)]) == "confirmed"
    assert decide([Requirement(clear, ">", 0, 1)], [Requirement(clear, "<", 0, 1)]) == "undecided"
    assert decide([Requirement(clear, "<", 0, 1)], [Requirement(clear, ">", 0, 1)]) == "undecided"
    assert decide([Requirement(clear, ">")], [Requirement(clear, "<")], complete=False) == "undecided"
    assert decide([], []) == "undecided"


def own_study(tmp_path: Path, **changes: Any) -> Path:
    path = new_study("mine", tmp_path)
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    for key, value in changes.items():
        inside, *names = values, *key.split("__")
        for name in names[:-1]:
            inside = inside[name]
        inside[names[-1]] = value
    path.write_text(yaml.safe_dump(values))
    return path


def made(folder: Path, better: float, conditions: Sequence[str]) -> None:
    """Predictions of the arms of the template: three runs that err on 30 % of images, less for noisy ones."""
    easy = np.random.default_rng(0).random((len(conditions), IMAGES))
    for arm in ("plain", "noisy-0.1", "noisy-0.3"):
        for seed in range(3):
            hard = 0.3 - better * (arm != "plain") + 0.002 * seed
            hards = np.where(np.array(conditions) == "clean", 0.1, hard)[:, None]
            right = (easy >= hards).astype(np.uint8)
            found = StudyPredictions(tuple(conditions), right, np.ones(IMAGES, np.uint8), {"seed": seed})
            write_predictions(folder / "predictions" / f"{arm}-seed{seed}.npz", found)


@pytest.mark.parametrize(("better", "verdict"), [(0.15, "confirmed"), (-0.15, "refuted"), (0.0, "undecided")])
def test_a_study_of_ones_own_is_decided_by_its_file(tmp_path: Path, better: float, verdict: str) -> None:
    corruptions = ["shot_noise", "fog"]
    study = own_study(
        tmp_path,
        conditions__corruptions=corruptions,
        questions__noise__confirmed=["noisy-* noise CE < 0"],
        questions__noise__refuted=["noisy-* noise CE > 0"],
    )
    made(tmp_path / "out", better, ("clean", *corruptions))
    assert reproduce(str(study), tmp_path / "out", only=["page"]).finished
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"half a point: {verdict} (Conv1 on MNIST)" in page
    assert shows(page, "2 comparisons", "2.5 %")
    assert {"noise.csv", "noise.svg", "noise-conditions.csv", "findings.csv", "index.html"} <= {
        one.name for one in (tmp_path / "out").iterdir()
    }


@pytest.mark.xdist_group("mnist-c")
def test_a_new_study_runs_as_it_is(tmp_path: Path, digits: Path) -> None:
    assert CliRunner().invoke(app, ["new", "study", "mine", str(tmp_path)]).exit_code == 0
    study, out = str(tmp_path / "mine.yaml"), str(tmp_path / "out")
    words = ["reproduce", study, "--data", f"mnist={digits}", "--output", out, "--rehearse", "--seeds", "1"]
    done = CliRunner().invoke(app, [*words, "--device", "cpu"])
    assert done.exit_code == 0, done.output
    assert "Training on noise lowers the CE" in (tmp_path / "out" / "README.md").read_text()
    again = CliRunner().invoke(app, [*words, "--device", "cpu", "--json"])
    assert '"done": 0' in again.stdout
    with pytest.raises(OptionError, match="exists; choose another name"):
        new_study("mine", tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"basis": "plain"}, r"unknown key 'basis'.* 'base'"),
        ({"base": "plan"}, "base must be the arm .* got 'plan'"),
        ({"arms__plain": {"recipe": "conv1", "epochs": 3}}, "arm plain: unknown key 'epochs'"),
        ({"arms__plain": {"recipe": "conv9"}}, "unknown recipe 'conv9'"),
        ({"arms__plain": {"recipe": "conv1", "start": "none"}}, "arm plain: unknown arm 'none'"),
        ({"arms__plain": {"recipe": "conv1", "changes": ["architecture=python:os:system"]}}, "Python code"),
        ({"questions__noise__confirmed": ["noisy-* mCE is low"]}, "must be written as 'ARM METRIC < NUMBER'"),
        ({"questions__noise__refuted": ["noisy-* mce > 0"]}, r"unknown metric 'mce'.* 'mCE'"),
        ({"questions__noise__rows": [["trained", "plain", ["silent"]]]}, "no arm matches 'silent'"),
    ],
)
def test_mistakes_in_a_study_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = own_study(tmp_path, **changes)
    with pytest.raises(BeaufortError, match=message):
        reproduce(str(path), tmp_path / "out", only=["page"])
    assert not (tmp_path / "out").exists()


def test_a_missing_or_damaged_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"none\.yaml.*No such file"):
        reproduce(str(tmp_path / "none.yaml"))
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(OptionError, match=re.escape(str(tmp_path / "bad.yaml"))):
        reproduce(str(tmp_path / "bad.yaml"))

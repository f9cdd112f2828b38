"""Failed training runs are detected from their own loss."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from beaufort.cli import app
from beaufort.training import Recipe, TrainingTensors, failure, train
from beaufort.training.architectures import build
from beaufort.training.ending import constant_loss, label_entropy
from beaufort.training.interventions import (
    Intervention,
    interventions,
    least_constant_loss,
    make_intervention,
)
from tests.commands import shows

COUNTS = [9, 3, 4, 2, 1, 5, 6, 2, 4, 4]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "plain": [{}, {"shift": 2, "mixup": 0.4}],
    "corruptions": [{"names": ["stripe"], "scale": "mnist"}],
    "image_filter": [{"image_filter": "stretch"}],
    "network": [{"steps": 1, "width": 2}, {"steps": 1, "width": 2, "smoothness": 0}],
    "pgd": [{"steps": 2}],
    "pruning": [{"fraction": 0.5}],
    "stability": [
        {"weight": 0},
        {"weight": 2.0, "form": "kl"},
        {"weight": 3.0, "form": "detached"},
    ],
    "augmix": [{}, {"weight": 0}],
}


class Same(nn.Module):
    """Predicts the class frequencies for every image."""

    def __init__(self, counts: list[int]) -> None:
        super().__init__()
        self.layer = nn.Linear(1, len(counts))
        with torch.no_grad():
            self.layer.weight.zero_()
            self.layer.bias.copy_(torch.tensor(counts).float().log())

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.layer(images.mean((1, 2, 3), keepdim=True).flatten(1))
        return found


def labels() -> Tensor:
    return torch.cat([torch.full((count,), place) for place, count in enumerate(COUNTS)])


@pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name in interventions for options in OPTIONS.get(name, [{}])]
)
def test_every_intervention_knows_its_constant_loss(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    made = make_intervention(name, options, seed=0, device="cpu")
    model, images = Same(COUNTS), torch.rand(sum(COUNTS), 1, 28, 28)
    expected = least_constant_loss(made, model, COUNTS)
    found = float(made.loss(model, images, labels()).detach())
    assert found == pytest.approx(expected, rel=0.1 if "mixup" in options else 1e-4)
    assert expected == pytest.approx(times(name, options) * label_entropy(COUNTS), abs=1e-5)


def times(name: str, options: dict[str, Any]) -> float:
    if name == "stability" and options.get("form") == "detached":
        return 1.0 + float(options["weight"])
    return 2.0 if name == "network" else 1.0


@pytest.mark.parametrize("weight", [0.05, 0.7, 2.0, 10.0, 1000.0])
@pytest.mark.parametrize("counts", [COUNTS, [4] * 10, [0, 3, 27]])
def test_no_constant_prediction_has_a_lower_stability_loss(weight: float, counts: list[int]) -> None:
    made = make_intervention("stability", {"weight": weight}, seed=0, device="cpu")
    least = least_constant_loss(made, Same([1] * len(counts)), counts)
    assert least is not None
    assert least <= (1 + weight) * label_entropy(counts) + 1e-5
    fractions = torch.tensor(counts).double() / sum(counts)
    peak = torch.eye(len(counts))[fractions.argmax()]
    others = torch.linspace(0, 1, 101)[:, None, None] * fractions.log().clamp_min(-60)
    logs = (others + torch.linspace(0, 30, 3001)[:, None] * peak).log_softmax(-1)
    losses = -(fractions * logs).sum(-1) - weight * (logs.exp() * logs).sum(-1)
    assert least - 1e-5 <= float(losses.min()) <= 1.005 * least  # of those with a peak, one is nearly best


def test_networks_with_a_loss_of_their_own_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.rand(sum(COUNTS), 1, 28, 28)
    msdnet = build(
        "msdnet", {"exits": 3, "base": 1, "step": 1, "growth": 2, "first": 4, "hidden": 8}, classes=10
    )
    logits = torch.tensor(COUNTS).float().log().expand(len(images), 10)
    monkeypatch.setattr(msdnet, "exits", lambda _: [logits] * 3)
    plain = make_intervention("plain", {}, seed=0, device="cpu")
    found = float(plain.loss(msdnet, images, labels()).detach())
    assert found == pytest.approx(least_constant_loss(plain, msdnet, COUNTS), abs=1e-5)

    capsule: Any = build("capsule", {"filters": 4, "channels": 2, "hidden": 4})
    bound = least_constant_loss(plain, capsule, COUNTS)
    assert bound is not None
    margins = []
    for length in np.linspace(0.02, 0.98, 49):
        upper = torch.zeros(len(images), 10, 16)
        upper[:, :, 0] = float(length)
        monkeypatch.setattr(capsule, "capsules", lambda _, upper=upper: upper)
        margins.append(float(capsule.loss(images, labels()).detach()))
    assert min(margins) >= bound
    equal = least_constant_loss(plain, capsule, [1] * 10)
    assert equal == pytest.approx(min(_margin(length) for length in np.linspace(0, 1, 10_001)), abs=1e-5)

    for name in ("abs", "stylizer"):
        recipe = Recipe(name="a", architecture=name)
        assert constant_loss(recipe, COUNTS) is None


def _margin(length: float) -> float:
    """Return the loss for ten equally frequent classes with capsules of one length (Sabour et al., eq. 4)."""
    return 10 * (0.1 * max(0, 0.9 - length) ** 2 + 0.5 * 0.9 * max(0, length - 0.1) ** 2)


def test_unknown_constant_losses() -> None:
    assert least_constant_loss(Intervention(loss=lambda *_: torch.zeros(())), Same(COUNTS), COUNTS) is None
    assert least_constant_loss(Intervention(constant=1), Same(COUNTS), [7]) is None
    assert constant_loss(Recipe(name="a", architecture="python:nowhere:make"), COUNTS) is None
    assert failure({"losses": [9.0], "constant_loss": None}) == ""
    assert failure({}) == ""


@pytest.mark.parametrize(("last", "failed"), [(2.31, True), (2.2781, True), (2.2779, False), (0.1, False)])
def test_the_limit_is_99_percent(last: float, failed: bool) -> None:
    assert bool(failure({"losses": [0.1, last], "constant_loss": 2.301})) is failed


def test_failure_of_a_training_run(patches: TrainingTensors, quick: Recipe, tmp_path: Path) -> None:
    learned = train(quick, patches, output=tmp_path / "a", device="cpu")
    assert learned.facts["constant_loss"] == pytest.approx(math.log(10), abs=1e-6)
    assert failure(learned.facts) == ""
    still = replace(quick, rate=0.0, epochs=1)
    same = train(still, patches, output=tmp_path / "b", device="cpu")
    assert f"{same.facts['losses'][-1]:.4f}" in failure(same.facts)
    assert "2.3026" in failure(same.facts)


def test_labels_are_counted_as_they_are_trained_on(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path
) -> None:
    """After an interruption, too, loss and labels are of the same images."""
    rare = torch.where(torch.arange(320) % 10 < 7, 0, patches.labels)
    data = TrainingTensors("rare", patches.classes, patches.images, rare)
    whole = train(replace(quick, epochs=2), data, output=tmp_path / "a", device="cpu")
    assert whole.facts["constant_loss"] == pytest.approx(label_entropy([224, 32, 32, 32]), abs=1e-6)
    for _ in range(20):
        part = train(replace(quick, epochs=2), data, output=tmp_path / "b", device="cpu", deadline=0.0)
        if part.finished:
            break
    assert part.facts["constant_loss"] == whole.facts["constant_loss"]


def test_training_stops_when_weights_become_nan(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "a.npz", images=rng.integers(0, 255, (64, 28, 28, 1), np.uint8), labels=np.arange(64) % 10
    )
    words = ["train", "conv1", "--data", str(tmp_path / "a.npz"), "--output", str(tmp_path / "made")]
    words += ["--device", "cpu", "--set", "epochs=5", "--set", "batch=16", "--set", "rate=1e5", "--seed", "3"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "last loss not a number" in done.stdout
    assert shows(done.stderr, "loss", "NaN")
    facts = json.loads((tmp_path / "made" / "training.json").read_text())
    assert facts["losses"][-1] is None
    assert facts["steps"] < 20

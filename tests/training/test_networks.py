"""The networks of MNIST-C's Figure 3: shapes, losses, adversaries, and ABS with published weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from beaufort.models.torch import read_tensors
from beaufort.training import Recipe, TrainingTensors, train
from beaufort.training.architectures import build, synthesis
from beaufort.training.interventions import TrainingContext, plain_loss
from beaufort.training.interventions.base import augment
from beaufort.training.interventions.network import Adversary
from beaufort.training.interventions.network import make as make_network
from beaufort.training.interventions.pgd import perturbed
from beaufort.training.interventions.plain import _mixed_loss

PARAMETERS = {
    "conv1": 431_080,
    "conv2": 3_274_634,
    "conv3": 83_466,
    "capsule": 8_215_568,
    "abs": 853_610,
    "digits": 54_666,
}
"""By hand from the papers: weights and biases of each layer, added up."""


@pytest.mark.parametrize("name", PARAMETERS)
def test_sizes(name: str) -> None:
    options = {"samples": 20, "steps": 1} if name == "abs" else {}
    model = build(name, options).eval()
    assert sum(one.numel() for one in model.parameters()) == PARAMETERS[name]
    predicted = model(torch.rand(2, 1, 28, 28))
    assert predicted.shape == (2, 10)
    assert torch.isfinite(predicted).all()


SMALL = {
    "capsule": {"filters": 4, "channels": 2, "hidden": 8},
    "abs": {"samples": 50, "steps": 3},
}


@pytest.mark.parametrize("name", SMALL)
def test_networks_with_a_loss_of_their_own_learn(
    name: str, patches: TrainingTensors, quick: Recipe, tmp_path: Path
) -> None:
    from dataclasses import replace

    recipe = replace(
        quick, architecture=name, architecture_options=SMALL[name], epochs=4, batch=80, rate=0.01
    )
    made = train(recipe, patches.first(160), output=tmp_path, device="cpu")
    assert made.facts["losses"][-1] < made.facts["losses"][0]
    assert made.facts["onnx"].startswith("none: ")


def test_capsules_are_shorter_than_one() -> None:
    lengths = build("capsule", SMALL["capsule"])(torch.rand(3, 1, 28, 28))
    assert ((lengths >= 0) & (lengths < 1)).all()


def test_pgd_stays_near_and_hurts(patches: TrainingTensors) -> None:
    torch.manual_seed(0)
    model = build("conv3", {"first": 4, "second": 8})
    images, labels = patches.images[:20].float() / 255, patches.labels[:20]
    moved = perturbed(model, images, labels, 0.1, 0.05, 4)
    assert (moved - images).abs().max() <= 0.1 + 1e-6
    assert ((moved >= 0) & (moved <= 1)).all()
    assert plain_loss(model, moved, labels) > plain_loss(model, images, labels) + 0.01
    assert all(one.grad is None for one in model.parameters())


def test_the_adversarial_network_learns_to_hurt(patches: TrainingTensors) -> None:
    torch.manual_seed(0)
    model = build("conv3", {"first": 4, "second": 8})
    images, labels = patches.images[:40].float() / 255, patches.labels[:40]
    one = make_network(TrainingContext(0, "cpu"), epsilon=0.3, steps=10, width=4, smoothness=0.0)
    clean = plain_loss(model, images, labels)
    both = one.loss(model, images, labels)
    assert both - clean > clean  # what the adversary does is worse than nothing at all
    assert all(weight.grad is None for weight in model.parameters())
    assert Adversary(4)(images).abs().max() <= 1


def test_shifts_move_whole_images() -> None:
    torch.manual_seed(0)
    images = torch.zeros(50, 1, 28, 28)
    images[:, :, 10, 12] = 1
    moved = augment(images, 2, False)
    assert moved.sum() == 50
    places = moved.flatten(1).argmax(1)
    rows, columns = places // 28, places % 28
    assert set(rows.tolist()) == {8, 9, 10, 11, 12}
    assert set(columns.tolist()) == {10, 11, 12, 13, 14}


def test_mirrored_images_are_whole() -> None:
    torch.manual_seed(0)
    images = torch.rand(40, 3, 6, 8)
    moved = augment(images, 0, True)
    mirrored = [torch.equal(one, image.flip(2)) for one, image in zip(moved, images, strict=True)]
    same = [torch.equal(one, image) for one, image in zip(moved, images, strict=True)]
    assert all(a != b for a, b in zip(mirrored, same, strict=True))
    assert 5 < sum(mirrored) < 35
    both = augment(torch.nn.functional.pad(images, (3, 3, 3, 3)), 3, True)
    torch.testing.assert_close(both.flatten(1).sum(1), images.flatten(1).sum(1))


def test_mixup_blends_images_and_losses() -> None:
    """Beta(1, 1) is uniform; a network that gives the mean back sees blends of both images."""
    images, labels = torch.zeros(64, 1, 2, 2), torch.arange(64) % 2
    images[labels == 1] = 1
    seen = []

    class Looks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x.mean((1, 2, 3)))
            return torch.stack((torch.zeros(len(x)), x.mean((1, 2, 3))), 1)

    torch.manual_seed(0)
    loss = _mixed_loss(Looks(), images, labels, 1.0)
    fractions = seen[0]
    assert ((fractions > 0.05) & (fractions < 0.95)).sum() > 10
    assert ((fractions == 0) | (fractions == 1)).sum() > 10
    # the fraction of the bright image in a blend is also the weight of the label 1
    logits = torch.stack((torch.zeros(64), fractions), 1).log_softmax(1)
    wanted = -(fractions * logits[:, 1] + (1 - fractions) * logits[:, 0]).mean()
    torch.testing.assert_close(loss, wanted)


def published(shared: Path, **options: Any) -> torch.nn.Module:
    states = [
        read_tensors(shared / "data" / "mnist_models" / "abs" / f"ABS_{digit}.net") for digit in range(10)
    ]
    return synthesis.from_published(states, **options)


def test_abs_with_its_published_weights(shared: Path) -> None:
    """Our layers and our inference give the authors' classifier: it recognizes and synthesizes digits."""
    from beaufort.data import load_dataset

    test = load_dataset(f"mnist:{shared / 'data' / 'mnist'}#test")
    images = torch.from_numpy(np.stack([test[i].image[:, :, 0] for i in range(30)]))[:, None].float() / 255
    labels = torch.from_numpy(np.array(test.labels[:30]))
    model = published(shared, samples=300, steps=8)
    predicted = model(images)
    assert (predicted.argmax(1) == labels).sum() >= 29
    error = -predicted[torch.arange(30), labels] / 784
    assert error.median() < 0.03  # a mean digit is 0.1 away from an empty image


def test_abs_gets_better_with_its_own_inference(shared: Path) -> None:
    """More samples and more steps can only raise the bound of the right class, but for chance."""
    from beaufort.data import load_dataset

    test = load_dataset(f"mnist:{shared / 'data' / 'mnist'}#test")
    images = torch.from_numpy(np.stack([test[i].image[:, :, 0] for i in range(8)]))[:, None].float() / 255
    few, more = (published(shared, samples=s, steps=n)(images).max(1).values for s, n in ((50, 0), (200, 5)))
    assert more.mean() > few.mean()


def test_abs_works_where_gradients_are_off(shared: Path) -> None:
    model = published(shared, samples=20, steps=2)
    with torch.inference_mode():
        predicted = model(torch.rand(2, 1, 28, 28))
    assert predicted.shape == (2, 10)

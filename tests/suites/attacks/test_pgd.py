"""PGD on a small network: stronger with epsilon, no change at 0, inside its ball, by image."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.data.labels import LabelSpace
from beaufort.models import Network, as_model, load_model, with_filter
from beaufort.suites.attacks import BALLS, PGD, AttackError, attack_images, attacks

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.suites.attacks.attack_nets import CLASSES, SIDE, make_images, net

IMAGES, LABELS = make_images(24)
IDS = [f"{i}.png" for i in range(24)]
EPSILONS = {"linf": (0.0, 3 / 255, 4.5 / 255, 8 / 255), "l2": (0.0, 0.3, 0.45, 0.8)}


def quick(norm: str, **options: Any) -> PGD:
    return PGD(name=f"pgd-{norm}", norm=norm, **{"steps": 8, **options})


def attacked(attack: PGD, model: Network, epsilon: float, **options: Any) -> Any:
    chosen: dict[str, Any] = {"ids": IDS, **options}
    return attack_images(attack, model, IMAGES, LABELS, epsilon=epsilon, **chosen)


def accuracy(model: Network, pixels: Any) -> float:
    return float((model.predict_pixels(pixels).cpu().numpy().argmax(axis=1) == LABELS).mean())


@pytest.mark.parametrize("norm", BALLS)
def test_accuracy_falls_with_epsilon(norm: str, victim: Network) -> None:
    found = [accuracy(victim, attacked(quick(norm), victim, epsilon)) for epsilon in EPSILONS[norm]]
    assert found == sorted(found, reverse=True)
    assert found[0] == 1
    assert 0 < found[2] < 1
    assert found[3] == 0


@pytest.mark.parametrize("name", ["pgd-linf", "pgd-l2", "testbed-pgd-linf", "testbed-pgd-l2"])
def test_nothing_changes_at_zero(name: str, victim: Network) -> None:
    shown = attack_images(attacks[name], victim, IMAGES, LABELS, epsilon=0.0, ids=IDS)
    assert (victim.predict_pixels(shown).numpy() == victim(IMAGES)).all()


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("keep_best", [True, False])
@pytest.mark.parametrize("norm", BALLS)
def test_the_perturbation_stays_in_its_ball(norm: str, keep_best: bool, clip: bool, victim: Network) -> None:
    """Measured in double precision, for values in 0..1, before the network normalizes them."""
    bright = np.where(IMAGES > 140, 255, np.where(IMAGES < 100, 0, IMAGES)).astype(np.uint8)
    attack = quick(norm, keep_best=keep_best, clip=clip, steps=3)
    for epsilon in EPSILONS[norm]:
        shown = attack_images(attack, victim, bright, LABELS, epsilon=epsilon, ids=IDS)
        clean = bright.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
        changes = shown.double() - torch.from_numpy(clean).double()
        assert (BALLS[norm].sizes(changes) <= epsilon).all()
        if clip:
            assert shown.min() >= 0
            assert shown.max() <= 1
    if not clip:
        assert shown.max() > 1


def test_a_perturbation_depends_on_id_and_seed_alone(victim: Network) -> None:
    """A step of length 0 leaves the random start to be looked at."""
    start = quick("linf", steps=1, step=1e-12, keep_best=False, clip=False)
    whole = attacked(start, victim, 0.1)
    order = np.random.default_rng(5).permutation(24)
    shuffled = attack_images(
        start, victim, IMAGES[order], LABELS[order], epsilon=0.1, ids=[IDS[i] for i in order]
    )
    assert (shuffled == whole[order.tolist()]).all()
    alone = attack_images(start, victim, IMAGES[3:4], LABELS[3:4], epsilon=0.1, ids=IDS[3:4])
    assert (alone == whole[3:4]).all()
    assert (attacked(start, victim, 0.1, seed=1) != whole).any(dim=1).any()
    assert (attacked(start, victim, 0.1, ids=[f"other {i}" for i in range(24)]) != whole).any()


@pytest.mark.parametrize("norm", BALLS)
def test_twice_the_same(norm: str, victim: Network) -> None:
    epsilon = EPSILONS[norm][2]
    first = attacked(quick(norm), victim, epsilon)
    assert (attacked(quick(norm), victim, epsilon) == first).all()


def test_more_steps_are_at_least_as_strong(victim: Network) -> None:
    few, many = (accuracy(victim, attacked(quick("linf", steps=n), victim, 4.5 / 255)) for n in (1, 20))
    assert many <= few < 1


def test_misclassified_images_are_not_attacked(victim: Network) -> None:
    wrong = (LABELS + 1) % CLASSES
    shown = attack_images(quick("linf"), victim, IMAGES, wrong, epsilon=8 / 255, ids=IDS)
    assert (shown == victim.pixels(IMAGES)).all()


def test_testbed_attacks_the_models_own_prediction(victim: Network) -> None:
    """Labels that are wrong do not matter to it, and it does not clip."""
    wrong = (LABELS + 1) % CLASSES
    attack = replace(attacks["testbed-pgd-linf"], steps=8)  # type: ignore[type-var]
    right, other = (
        attack_images(attack, victim, IMAGES, some, epsilon=8 / 255, ids=IDS) for some in (LABELS, wrong)
    )
    assert (right == other).all()
    dark = attack_images(attack, victim, np.zeros_like(IMAGES), LABELS, epsilon=8 / 255, ids=IDS)
    assert dark.min() < 0


def test_the_testbeds_settings() -> None:
    linf, l2 = attacks["testbed-pgd-linf"], attacks["testbed-pgd-l2"]
    assert linf.facts() == {
        "attack": "testbed-pgd-linf",
        "norm": "linf",
        "steps": 100,
        "step": 0.03,
        "truth": False,
        "clip": False,
        "keep_best": False,
        "grow": False,
        "version": 1,
    }
    assert l2.facts()["step"] == 0.1
    assert l2.radius(0.5, 448) == 1.0
    assert linf.radius(0.5, 448) == 0.5


def test_the_step_does_not_grow_with_the_image(victim: Network) -> None:
    """In the testbed the l2 radius does, by side / 224, and the step stays that of epsilon."""
    attack = PGD(name="one", norm="l2", steps=1, step=0.001, keep_best=False, clip=False, grow=True)
    still = replace(attack, step=1e-9)
    epsilon = 0.3 * 224 / SIDE
    moved = attacked(attack, victim, epsilon) - attacked(still, victim, epsilon)
    # The start is on the sphere: what a step leaves along it is at most its length.
    assert (BALLS["l2"].sizes(moved) <= 0.001 * epsilon * 1.01).all()
    assert (BALLS["l2"].sizes(moved) > 0.001 * epsilon * 0.5).all()


def test_sets_of_labels(victim: Network) -> None:
    """Any label of a set is correct, so the attack must leave all of them; images without labels stay."""
    sets = np.stack([LABELS, (LABELS + 1) % CLASSES], axis=1)
    sets[:4] = -1
    shown = attack_images(quick("linf"), victim, IMAGES, sets, epsilon=12 / 255, ids=IDS)
    predicted = victim.predict_pixels(shown).argmax(dim=1).numpy()
    assert (shown[:4] == victim.pixels(IMAGES)[:4]).all()
    assert (predicted[4:, None] != sets[4:]).all()


def test_classes_of_a_label_space(victim: Network) -> None:
    """Two outputs are one class: a wrong prediction is neither of them."""
    space = LabelSpace(CLASSES, ((0, 1), (2, 3)))
    shown = attack_images(quick("linf"), victim, IMAGES, LABELS // 2, epsilon=10 / 255, ids=IDS, space=space)
    predicted = space.apply(victim.predict_pixels(shown)).argmax(dim=1).numpy()
    assert (predicted != LABELS // 2).all()


PREPROCESSINGS: list[dict[str, Any]] = [
    {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)},
    {"value_range": "0..255", "mean": (123.0, 117.0, 104.0)},
    {"order": "BGR", "mean": (0.1, 0.2, 0.3)},
    {"channels": 1, "mean": (0.5,), "std": (0.3,)},
    {"layout": "NHWC"},
]


@pytest.mark.parametrize("options", PREPROCESSINGS)
def test_unchanged_pixels_give_the_predictions_of_images(options: dict[str, Any]) -> None:
    """Every preprocessing is part of the differentiable network, with the same bits."""
    every = np.arange(256 * 3, dtype=np.int64).reshape(1, 16, 16, 3).astype(np.uint8)
    images = np.concatenate([every, IMAGES])
    seen = []

    class Watch(torch.nn.Module):
        def forward(self, batch: Any) -> Any:
            seen.append(batch.detach().clone())
            return batch.flatten(1)[:, :CLASSES]

    model = as_model(Watch(), name="watch", classes=CLASSES, device="cpu", **options)
    assert isinstance(model, Network)
    model(images)
    pixels = model.pixels(images).requires_grad_()
    model.predict_pixels(pixels.detach())
    logits = model.logits_of_pixels(pixels)
    assert all(one.shape == seen[0].shape and (one == seen[0]).all() for one in seen[1:])
    (gradients,) = torch.autograd.grad(logits.sum(), pixels)
    assert (gradients != 0).any()


def test_resize_and_crop_come_before_the_attack() -> None:
    model = net(input_size=12, resize=14)
    assert attacked(quick("linf"), model, 4 / 255).shape == (24, 3, 12, 12)


def test_models_without_gradients_are_rejected() -> None:
    function = as_model(lambda images: images[:, 0, 0].astype(np.float32), name="plain", classes=3)
    with pytest.raises(AttackError, match=r"plain .*\(python:plain\)"):
        attack_images(quick("linf"), function, IMAGES, LABELS, epsilon=0.1, ids=IDS)

    with pytest.raises(AttackError, match=r"\+clahe"):
        attack_images(quick("linf"), with_filter(net(), "clahe"), IMAGES, LABELS, epsilon=0.1, ids=IDS)

    class Blind(torch.nn.Module):
        def forward(self, batch: Any) -> Any:
            return batch.detach().mean(dim=(2, 3))

    blind = as_model(Blind(), name="blind", device="cpu")
    with pytest.raises(AttackError, match=r"blind.* none"):
        attack_images(quick("linf"), blind, IMAGES, LABELS % 3, epsilon=0.1, ids=IDS)


def test_models_for_8_bit_images_are_rejected() -> None:
    class Bytes(torch.nn.Module):
        def forward(self, batch: Any) -> Any:
            return batch.float().mean(dim=(2, 3))

    model = as_model(Bytes(), name="bytes", device="cpu", dtype="uint8", range="0..255")
    with pytest.raises(AttackError, match="bytes takes 8-bit"):
        attack_images(quick("linf"), model, IMAGES, LABELS % 3, epsilon=0.1, ids=IDS)


def test_exported_programs_can_be_attacked(tmp_path: Any) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIDE * SIDE * 3, CLASSES))
    program = torch.export.export(module, (torch.zeros(4, 3, SIDE, SIDE),))
    torch.export.save(program, tmp_path / "net.pt2")
    model = load_model(f"torch:{tmp_path / 'net.pt2'}", device="cpu")
    assert isinstance(model, Network)
    before = float((model(IMAGES).argmax(axis=1) == LABELS).mean())
    assert accuracy(model, attacked(quick("linf"), model, 0.1)) < before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "l1"}, "unknown norm 'l1'"),
        ({"norm": "l2", "steps": 0}, "steps must be .* got 0"),
        ({"norm": "l2", "step": -1}, "step must be .* got -1"),
    ],
)
def test_settings_that_are_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BeaufortError, match=message):
        PGD(name="x", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -0.1}, "epsilon must be a number .* got -0.1"),
        ({"epsilon": float("nan")}, "epsilon must be a number"),
        ({"epsilon": "8/255"}, "epsilon must be a number"),
        ({"ids": IDS[:1]}, r"ids .*list.* 24 images"),
        ({"ids": set(IDS)}, "ids must be a list"),
        ({"labels": LABELS[:2]}, r"labels must be integers of shape \(24,\), .* got int64 of shape \(2,\)"),
        ({"labels": LABELS / 2}, "labels must be integers .* got float64"),
        ({"seed": 1.5}, r"seed .*integer.* 1.5"),
    ],
)
def test_invalid_attack_options(options: dict[str, Any], message: str, victim: Network) -> None:
    given = {"epsilon": 0.1, "ids": IDS, "labels": LABELS, **options}
    with pytest.raises(OptionError, match=message):
        attack_images(quick("linf"), victim, IMAGES, **given)

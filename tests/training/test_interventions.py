"""Interventions do what their papers say: terms of the loss, operations on images, what is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.models.filters import load_filter
from beaufort.testing._contracts import example_image
from beaufort.training import Recipe, TrainingTensors, train
from beaufort.training.data import TrainingBlock
from beaufort.training.interventions import Intervention, make_intervention
from beaufort.training.interventions import augmix as _operations
from beaufort.training.interventions.augmix import augmix, divergence
from beaufort.training.interventions.base import augment
from beaufort.training.interventions.noise import with_noise
from beaufort.training.interventions.prime import prime, random_colors, random_filter, random_warp
from beaufort.training.interventions.stability import FORMS, disagreement
from beaufort.training.trained import WEIGHTS


def make(name: str, **options: Any) -> Intervention:
    return make_intervention(name, options, seed=0, device="cpu")


def photos(count: int = 6, side: int = 32) -> Tensor:
    drawn = np.stack([example_image(side, side, 3, variant=i) for i in range(count)])
    return torch.from_numpy(drawn).permute(0, 3, 1, 2).contiguous()


class Net(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(3600, 5))


def net() -> Net:
    torch.manual_seed(0)
    return Net().train()


def loss_of(intervention: Intervention, model: nn.Module, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    return intervention.loss(model, photos().float() / 255, torch.arange(6) % 5)


def test_stability_of_weight_0_is_plain_fine_tuning_bit_for_bit(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path
) -> None:
    moves = {"shift": 2, "flip": True}
    start = train(quick, patches, output=tmp_path / "start", device="cpu").folder
    base = replace(quick, start=str(start), epochs=1)
    for name, intervention, options in (
        ("plain", "plain", moves),
        ("zero", "stability", {**moves, "weight": 0, "strength": 0.1}),
        ("some", "stability", {**moves, "weight": 0.1, "strength": 0.1}),
    ):
        recipe = replace(base, intervention=intervention, intervention_options=options)
        train(recipe, patches, output=tmp_path / name, device="cpu")
    made = {name: (tmp_path / name / WEIGHTS).read_bytes() for name in ("plain", "zero", "some")}
    assert made["zero"] == made["plain"]
    assert made["some"] != made["plain"]


def test_the_term_of_stability_is_added_with_its_weight() -> None:
    plain, model = loss_of(make("plain"), net()), net()
    torch.manual_seed(1)
    images = photos().float() / 255
    clean = model(images)
    noisy = model(with_noise(images, "uniform", 0.1))
    for form in FORMS:
        found = loss_of(make("stability", weight=0.5, strength=0.1, form=form), net())
        torch.testing.assert_close(found, plain + 0.5 * disagreement(clean, noisy, form))


def test_forms_of_disagreement() -> None:
    torch.manual_seed(0)
    clean, noisy = torch.randn(7, 5, requires_grad=True), torch.randn(7, 5, requires_grad=True)
    fraction = clean.softmax(1)
    by_hand = -torch.stack([(fraction[i] * noisy[i].log_softmax(0)).sum() for i in range(7)]).mean()
    entropy = -(fraction * fraction.log()).sum(1).mean()
    torch.testing.assert_close(disagreement(clean, noisy), by_hand)
    torch.testing.assert_close(disagreement(clean, noisy, "detached"), by_hand)
    torch.testing.assert_close(disagreement(clean, noisy, "kl"), by_hand - entropy)
    assert float(disagreement(clean, clean, "kl").detach()) == pytest.approx(0, abs=1e-6)
    slopes = {
        form: torch.autograd.grad(disagreement(clean, noisy, form), (clean, noisy), allow_unused=True)
        for form in FORMS
    }
    assert slopes["detached"][0] is None
    torch.testing.assert_close(slopes["detached"][1], slopes["cross-entropy"][1])
    torch.testing.assert_close(slopes["kl"][1], slopes["cross-entropy"][1])
    assert not torch.allclose(slopes["kl"][0], slopes["cross-entropy"][0])
    same = torch.autograd.grad(disagreement(clean, clean.detach(), "cross-entropy"), clean)[0]
    sharpening = torch.autograd.grad(-(fraction * fraction.log()).sum(1).mean(), clean)[0]
    torch.testing.assert_close(
        same, sharpening
    )  # where both agree, it makes clean predictions more confident


def test_noisy_images_leave_the_running_statistics_alone() -> None:
    plain, stable = net(), net()
    loss_of(make("plain"), plain)
    loss_of(make("stability", weight=1.0, strength=0.5), stable)
    for one, other in zip(plain.buffers(), stable.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert all(layer.track_running_stats for layer in stable.modules() if isinstance(layer, nn.BatchNorm2d))


def test_noise() -> None:
    torch.manual_seed(0)
    gray = torch.full((4, 3, 50, 50), 0.5)
    uniform, normal = (with_noise(gray, kind, 0.1) - 0.5 for kind in ("uniform", "gaussian"))
    assert uniform.abs().max() <= 0.1 + 1e-6
    assert float(uniform.std()) == pytest.approx(0.1 / 3**0.5, rel=0.03)
    assert float(normal.std()) == pytest.approx(0.1, rel=0.03)
    assert with_noise(torch.ones(1, 1, 8, 8), "gaussian", 1.0).max() == 1
    seen: list[Tensor] = []

    class Watching(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            seen.append(images)
            return torch.zeros(len(images), 5, requires_grad=True)

    loss_of(make("noise", strength=0.2, clean=0.5), Watching())
    untouched = [torch.equal(a, b) for a, b in zip(seen[0], photos().float() / 255, strict=True)]
    assert True in untouched
    assert False in untouched


def test_augmentation_moves_and_mirrors() -> None:
    torch.manual_seed(3)
    images = photos(64).float()
    moved = augment(images, 2, False)
    wide = functional.pad(images, (2, 2, 2, 2))
    places = [
        [(y, x) for y in range(5) for x in range(5) if torch.equal(one, whole[:, y : y + 32, x : x + 32])]
        for one, whole in zip(moved, wide, strict=True)
    ]
    assert all(places)
    assert len({where[0] for where in places}) > 10
    turned = augment(images, 0, True)
    same = [torch.equal(a, b) for a, b in zip(turned, images, strict=True)]
    other = [torch.equal(a, b.flip(-1)) for a, b in zip(turned, images, strict=True)]
    assert all(a != b for a, b in zip(same, other, strict=True))
    assert 15 < sum(same) < 49


def test_image_filter_comes_before_preprocessing() -> None:
    block = TrainingBlock(photos(), torch.zeros(6, dtype=torch.long), list(range(6)))
    made = make("image_filter", image_filter="clahe:tiles=4").prepare(block, 0)
    known = load_filter("clahe:tiles=4")(photos().permute(0, 2, 3, 1).numpy())
    np.testing.assert_array_equal(made.permute(0, 2, 3, 1).numpy(), known)
    with pytest.raises(OptionError, match="ten-crop"):
        make("image_filter", image_filter="ten-crop")
    with pytest.raises(UnknownNameError, match="did you mean 'clahe'"):
        make("image_filter", image_filter="clahee")


@pytest.mark.slow
def test_all_corruptions_but_some() -> None:
    block = TrainingBlock(photos(2), torch.zeros(2, dtype=torch.long), [0, 1])
    options: dict[str, Any] = {"severity": 3, "scale": "cifar"}
    one = make("corruptions", names="contrast", **options).prepare(block, 0)
    left = make("corruptions", names=["contrast", "fog"], but="fog", **options).prepare(block, 0)
    chains = {"names": ["fog@2+snow@3", "contrast@3"], "scale": options.get("scale", "auto")}
    both = [make("corruptions", but=but, **chains).prepare(block, 0) for but in ("contrast@3", ())]
    assert not torch.equal(*both)  # without the chain of one link, all have the other
    assert torch.equal(both[0], make("corruptions", **{**chains, "names": "fog@2+snow@3"}).prepare(block, 0))
    np.testing.assert_array_equal(one.numpy(), left.numpy())
    with pytest.raises(OptionError, match=r"'but' .* got 'snow'"):
        make("corruptions", names="noise", but="snow", **options)
    with pytest.raises(OptionError, match="'names'"):
        make("corruptions", names="noise", but="noise", **options)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (_operations.autocontrast, ImageOps.autocontrast),
        (_operations.equalize, ImageOps.equalize),
        (lambda x: _operations.posterize(x, torch.full((len(x),), 0.3)), lambda x: ImageOps.posterize(x, 3)),
        (lambda x: _operations.solarize(x, torch.full((len(x),), 0.5)), lambda x: ImageOps.solarize(x, 128)),
    ],
    ids=["autocontrast", "equalize", "posterize", "solarize"],
)
def test_operations_are_those_of_pillow(ours: Any, theirs: Any) -> None:
    images = photos() // 2 + 20
    made = (ours(images.float() / 255) * 255).round().byte()
    for image, own in zip(images, made, strict=True):
        known = np.asarray(theirs(Image.fromarray(image.permute(1, 2, 0).numpy())))
        assert np.abs(own.permute(1, 2, 0).numpy().astype(int) - known).max() <= 1


@pytest.mark.parametrize("name", ["rotate", "shear_x", "shear_y", "translate_x", "translate_y"])
def test_moves_are_as_large_as_they_say(name: str) -> None:
    torch.manual_seed(0)
    move = getattr(_operations, name)
    dot = torch.zeros(20, 1, 61, 61)
    dot[:, :, 10, 30] = 1  # 20 pixels above the middle
    centers = [_center(one[0]) for one in move(dot, torch.ones(20))]
    assert {abs(round(y - 10)) + abs(round(x - 30)) > 0 for y, x in centers} == {name != "shear_y"}
    far = max(np.hypot(y - 10, x - 30) for y, x in centers)
    wanted = {"rotate": 2 * 20 * np.sin(np.radians(15)), "shear_x": 6, "shear_y": 0}
    limit = wanted.get(name, 61 / 3)
    assert far == pytest.approx(limit, abs=0.7) or (name == "translate_y" and far < limit)
    assert torch.equal(move(dot, torch.zeros(20)).round(), dot)


@pytest.mark.parametrize("name", ["rotate", "shear_x", "shear_y"])
def test_turns_are_the_same_in_images_that_are_not_square(name: str) -> None:
    """Rotations and shears have the same size in images of any shape."""
    made = []
    for height, width in ((41, 41), (41, 81), (81, 41)):
        dots = torch.zeros(1, 1, height, width)
        for y, x in ((-8, 0), (0, 8), (5, -5)):
            dots[:, :, height // 2 + y, width // 2 + x] = 1
        torch.manual_seed(0)
        moved = getattr(_operations, name)(dots, torch.ones(1))
        top, left = height // 2 - 20, width // 2 - 20
        made.append(moved[:, :, top : top + 41, left : left + 41])
    for one in made[1:]:
        torch.testing.assert_close(one, made[0], rtol=0, atol=1e-4)


def _center(image: Tensor) -> tuple[float, float]:
    if image.sum() < 0.5:
        return 0.0, 30.0  # moved out
    y, x = np.mgrid[:61, :61]
    weights = image.numpy() / float(image.sum())
    return float((y * weights).sum()), float((x * weights).sum())


def test_augmix_mixes_and_agrees() -> None:
    images = photos().float() / 255
    torch.manual_seed(0)
    one = augmix(images)
    torch.manual_seed(0)
    torch.testing.assert_close(augmix(images), one, rtol=0, atol=0)
    assert one.shape == images.shape
    assert 0 <= float(one.min()) <= float(one.max()) <= 1
    assert (one != images).flatten(1).any(1).sum() >= 5
    logits = torch.randn(6, 5)
    assert float(divergence(logits, logits, logits)) == pytest.approx(0, abs=1e-5)
    other = [torch.randn(6, 5) for _ in range(3)]
    fractions = torch.stack([values.softmax(1) for values in other])
    middle = fractions.mean(0)
    by_hand = (fractions * (fractions / middle).log()).sum(2).mean()
    torch.testing.assert_close(divergence(*other), by_hand)


@pytest.mark.parametrize(("name", "options"), [("augmix", {}), ("augmix", {"weight": 0}), ("prime", {})])
def test_moved_images_are_mixed_too(name: str, options: dict[str, Any]) -> None:
    intervention = make(name, shift=2, flip=True, **options)
    for seed in range(4):
        assert torch.isfinite(loss_of(intervention, net(), seed))


def test_the_loss_of_augmix_has_the_divergence() -> None:
    """For a network with varying outputs, with the same random numbers."""
    small, large = (loss_of(make("augmix", weight=weight), net()).detach() for weight in (1e-6, 12.0))
    assert large > small


def test_prime_changes_within_bounds() -> None:
    torch.manual_seed(0)
    images = photos(12).float() / 255
    made = prime(images)
    assert made.shape == images.shape
    assert 0 <= float(made.min()) <= float(made.max()) <= 1
    assert (made != images).flatten(1).any(1).all()
    still = prime(images, filter=0, warp=0, color=0)
    torch.testing.assert_close(still, images, rtol=0, atol=2e-3)
    for change in (random_filter, random_warp, random_colors):
        torch.testing.assert_close(change(images, 0.0), images, rtol=0, atol=1e-4)
        assert (change(images, 0.5) != images).flatten(1).any(1).all()
    ends = torch.cat([torch.zeros(3, 3, 8, 8), torch.ones(3, 3, 8, 8)])
    torch.testing.assert_close(random_colors(ends, 0.5), ends, rtol=0, atol=1e-4)


def test_pruned_weights_are_the_smallest_and_stay_away(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path
) -> None:
    start = train(quick, patches, output=tmp_path / "start", device="cpu")
    before = {name: value.clone() for name, value in start.model.state_dict().items()}
    recipe = replace(
        quick, start=str(start.folder), intervention="pruning", intervention_options={"fraction": 0.8}
    )
    after = train(recipe, patches, output=tmp_path / "pruned", device="cpu").model.state_dict()
    names = [name for name in before if name.endswith("weight")]
    gone = torch.cat([(after[name] == 0).flatten() for name in names])
    sizes = torch.cat([before[name].abs().flatten() for name in names])
    assert float(gone.float().mean()) == pytest.approx(0.8, abs=0.001)
    assert sizes[gone].max() <= sizes[~gone].min()


def test_a_pruned_network_can_be_pruned_again(
    patches: TrainingTensors, quick: Recipe, tmp_path: Path
) -> None:
    """Repeated pruning removes further weights, and removed ones stay zero."""
    start = train(quick, patches, output=tmp_path / "start", device="cpu").folder
    for fraction in (0.9, 0.6, 0.95):
        options = {"fraction": fraction}
        recipe = replace(quick, start=str(start), intervention="pruning", intervention_options=options)
        made = train(recipe, patches, output=tmp_path / str(fraction), device="cpu")
        start = made.folder
        values = [value for name, value in made.model.state_dict().items() if name.endswith("weight")]
        gone = float(torch.cat([(value == 0).flatten() for value in values]).float().mean())
        assert gone >= fraction - 0.001
        assert gone == pytest.approx(fraction, abs=0.001) or fraction == 0.6  # some others are zeros still


def test_networks_without_weights_to_prune_are_rejected() -> None:
    pruning = make_intervention("pruning", {"fraction": 0.5}, seed=0, device="cpu")
    with pytest.raises(OptionError, match="Conv2d or Linear"):
        pruning.loss(nn.Flatten(), torch.zeros(2, 1, 2, 2), torch.zeros(2, dtype=torch.long))


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("plain", {"shift": -1}, "shift must be an integer from 0 to 1024, got -1"),
    ("plain", {"flip": 1}, "flip must be .*, got 1"),
    ("stability", {"form": "l2"}, "unknown form 'l2'"),
    ("stability", {"weight": -1}, "weight must be a number from 0 to 1e\\+06, got -1"),
    ("stability", {"noise": "salt"}, "unknown noise 'salt'"),
    ("noise", {"strength": 0}, "strength must be .* got 0"),
    ("noise", {"clean": 1.0}, "clean must be below 1"),
    ("augmix", {"width": 0}, "width must be an integer from 1 to 16, got 0"),
    ("augmix", {"severity": 11}, "severity must be a number from 0.1 to 10, got 11"),
    ("prime", {"warp": -1}, "warp must be a number from 0 to 100, got -1"),
    ("prime", {"depth": 1.5}, "depth must be an integer from 1 to 16, got 1.5"),
    ("pruning", {"fraction": 1.0}, "fraction must be .* got 1.0"),
    ("image_filter", {}, "the intervention 'image_filter' requires the option 'image_filter'"),
    ("stability", {"wait": 1}, "unknown option of the intervention 'stability': 'wait'; did you mean 'weigh"),
    (
        "pruning",
        {"fraction": 0.5, "x": 1},
        "'pruning': 'x'; available: fraction, shift, flip",
    ),
    ("corruptions", {"names": []}, "must not be empty"),
    ("corruptions", {"names": "fog", "but": "snow@3"}, "'but' .* got 'snow@3'"),
)


@pytest.mark.parametrize(("name", "options", "message"), WRONG, ids=[f"{one[0]}-{one[1]}" for one in WRONG])
def test_invalid_options_are_reported(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises((OptionError, UnknownNameError), match=message):
        make(name, **options)


@pytest.mark.parametrize("name", ["stability", "augmix"])
def test_networks_with_their_own_loss_are_rejected(name: str) -> None:
    class Own(nn.Module):
        def loss(self, images: Tensor, labels: Tensor) -> Tensor:
            return images.sum()

    with pytest.raises(OptionError, match="Own"):
        loss_of(make(name), Own())

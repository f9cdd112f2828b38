"""The networks of Icons-50: their sizes, and their outputs compared with an independent implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from beaufort._core.errors import OptionError
from beaufort.studies.study_file import definition
from beaufort.training import TrainingTensors, get_recipe, recipe_names, train
from beaufort.training.architectures import build as build_network
from beaufort.training.architectures import network_size

SIZES: list[tuple[str, dict[str, Any], int, float]] = [
    ("resnet", {}, 275_074, 40.8),
    ("densenet", {}, 998_354, 350.7),
    ("resnext", {}, 8_644_562, 1347.3),
    ("msdnet", {}, 5_486_392, 147.4),
    ("shake-shake", {}, 26_347_154, 3919.1),
    ("shake-shake", {"width": 32}, 2_937_426, 436.1),
    ("wide-resnet", {}, 2_759_170, 392.6),
    ("wide-resnet", {"depth": 40, "factor": 2}, 2_248_706, 327.6),
    ("condensenet", {}, 552_242, 62.4),
    ("multigrid-resnet", {}, 278_040, 40.9),
]
"""With 50 classes: parameters, and millions of multiply-adds on 32×32 pixels, as in the documentation."""

PUBLISHED: list[tuple[str, dict[str, Any], float]] = [
    ("resnext", {"base": 64, "stem": 64, "classes": 10}, 34.4),
    ("shake-shake", {"width": 32, "classes": 10}, 2.9),
    ("shake-shake", {"classes": 10}, 26.2),
    ("wide-resnet", {"depth": 40, "factor": 2, "classes": 10}, 2.2),
    ("resnet", {"classes": 10}, 0.27),
    ("condensenet", {"classes": 10}, 0.52),
]
"""Millions of parameters that the papers print, for ten classes."""


def build(name: str, options: dict[str, Any], **more: int) -> Any:
    """A network, whose layers have no types that mypy knows."""
    return build_network(name, options, **more)


def made(name: str, options: dict[str, Any]) -> Any:
    network = build(name, options)
    if name == "condensenet":
        network.on_progress(1.0)
    return network


@pytest.mark.parametrize(("name", "options", "parameters", "millions"), SIZES)
def test_sizes_are_those_of_the_documentation(
    name: str, options: dict[str, Any], parameters: int, millions: float
) -> None:
    page = Path(__file__).parents[2] / "docs" / "studies" / "icons-50.md"
    assert f"| {parameters:,} | {millions:.1f} |" in page.read_text(encoding="utf-8")
    size = network_size(made(name, options))
    assert size.parameters == parameters
    assert size.multiply_adds / 1e6 == pytest.approx(millions, abs=0.05)


@pytest.mark.parametrize(("name", "options", "millions"), PUBLISHED)
def test_sizes_are_those_of_the_papers(name: str, options: dict[str, Any], millions: float) -> None:
    """Within 1 %, or as exact as the paper prints it."""
    assert network_size(made(name, options)).parameters / 1e6 == pytest.approx(
        millions, rel=0.01, abs=0.05 if millions > 1 else 0.005
    )


def test_multigrid_is_as_large_as_resnet() -> None:
    ours, theirs = network_size(build("multigrid-resnet", {})), network_size(build("resnet", {}))
    assert ours.parameters == pytest.approx(theirs.parameters, rel=0.1)
    assert ours.multiply_adds == pytest.approx(theirs.multiply_adds, rel=0.1)


def randomized(network: Any) -> Any:
    """Every tensor is random, the statistics of batch normalization too, so that a mix-up is seen."""
    generator = torch.Generator().manual_seed(3)
    for value in network.state_dict().values():
        if value.dtype.is_floating_point:
            value.copy_(torch.rand(value.shape, generator=generator) * (0.2 if value.ndim > 1 else 1) + 0.1)
            if value.ndim > 1:
                value.sub_(0.2)
    return network.eval()


def same_weights(ours: Any, theirs: Any) -> None:
    """Copy all tensors across, in their order; shapes must agree."""
    mine, other = ours.state_dict(), theirs.state_dict()
    assert [tuple(v.shape) for v in mine.values()] == [tuple(v.shape) for v in other.values()]
    theirs.load_state_dict(dict(zip(other, mine.values(), strict=True)))
    theirs.eval()


def reference(name: str) -> tuple[dict[str, Any], Any]:
    """Small options for our network, and the same network of pytorchcv."""
    pytest.importorskip("pytorchcv", reason="pytorchcv is not installed; the extra dev has it")
    from pytorchcv.models import densenet_cifar, msdnet_cifar10, resnet_cifar, resnext_cifar, wrn_cifar

    if name == "resnet":
        widths = [[16] * 3, [32] * 3, [64] * 3]
        return {"classes": 10}, resnet_cifar.CIFARResNet(widths, 16, bottleneck=False)
    if name == "resnext":
        widths = [[256] * 3, [512] * 3, [1024] * 3]
        options = {"cardinality": 4, "base": 64, "stem": 64, "classes": 10}
        return options, resnext_cifar.CIFARResNeXt(widths, 64, cardinality=4, bottleneck_width=64)
    if name == "wide-resnet":
        return {"classes": 10}, wrn_cifar.CIFARWRN([[64] * 2, [128] * 2, [256] * 2], 16)
    if name == "densenet":
        return {"compression": 0.5, "classes": 10}, densenet_cifar.densenet40_k24_bc_cifar10()
    return {"first": 16, "classes": 10}, msdnet_cifar10.msdnet22_cifar10()


@pytest.mark.parametrize("name", ["resnet", "resnext", "wide-resnet", "densenet", "msdnet"])
def test_predictions_equal_an_independent_implementation(name: str) -> None:
    options, theirs = reference(name)
    ours = randomized(build(name, options))
    same_weights(ours, theirs)
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        one, other = ours(images), theirs(images)
    assert one.std() > 0
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


def test_shake_shake_is_built_of_the_branches_of_pytorchcv() -> None:
    """Its network differs (ReLU after the sum), so the branches are compared and the sums written out."""
    resnet = pytest.importorskip("pytorchcv.models.resnet", reason="pytorchcv is not installed")
    block = randomized(build("shake-shake", {"depth": 8, "width": 8, "classes": 5})).stages[1]
    images = torch.randn(2, 8, 16, 16, generator=torch.Generator().manual_seed(0))
    sums = []
    for branch in (block.one, block.other):
        theirs = resnet.ResBlock(8, 16, 2)
        same_weights(branch, theirs)
        sums.append(theirs(images.relu()))
    even, odd = images.relu()[:, :, 0::2, 0::2], images.relu()[:, :, 1::2, 1::2]
    shortcut = block.shortcut
    both = torch.cat((shortcut.here(even), shortcut.further(odd)), 1)
    wanted = (sums[0] + sums[1]) / 2 + shortcut.norm(both)
    torch.testing.assert_close(block(images), wanted, rtol=1e-4, atol=1e-4)


def test_branches_are_shaken_for_each_image() -> None:
    from beaufort.training.architectures.shake_shake import _Mix

    mix: Any = _Mix.apply
    first, second = (torch.randn(3, 2, 4, 4, requires_grad=True) for _ in range(2))
    fraction, back = (
        torch.tensor([0.0, 0.25, 1.0]).view(3, 1, 1, 1),
        torch.tensor([0.5, 1.0, 0.0]).view(3, 1, 1, 1),
    )
    mixed = mix(first, second, fraction, back)
    torch.testing.assert_close(mixed, fraction * first + (1 - fraction) * second)
    slope = torch.randn(3, 2, 4, 4)
    mixed.backward(slope)
    torch.testing.assert_close(first.grad, back * slope)
    torch.testing.assert_close(second.grad, (1 - back) * slope)


def test_shaking_is_for_training_alone() -> None:
    images = torch.rand(4, 3, 32, 32)
    shaken = build("shake-shake", {"depth": 8, "width": 4})
    still = build("shake-shake", {"depth": 8, "width": 4, "shake": False})
    still.load_state_dict(shaken.state_dict())
    assert not torch.equal(shaken(images), shaken(images))
    torch.testing.assert_close(still(images), still(images))
    for network in (shaken, still):
        network.load_state_dict(shaken.state_dict())
        network.eval()
    torch.testing.assert_close(shaken(images), still(images))


def test_condensenet_gives_up_the_weakest_inputs_step_by_step() -> None:
    network = build("condensenet", {"layers": [2, 2], "growth": [8, 8]})
    layer = network.blocks[1].first
    left = []
    for fraction in (0.0, 0.1, 0.17, 0.34, 0.5, 0.9):
        network.on_progress(fraction)
        left.append(int(layer.mask[0].sum()))
    assert left == [24, 24, 18, 12, 6, 6]
    strength = layer.weight.detach().abs().view(-1, 4, 24).sum(0)
    for group in range(4):
        kept = layer.mask[group, :, 0, 0].bool()
        assert strength[group][kept].min() >= strength[group][~kept].max()
        torch.testing.assert_close(layer.mask[group], layer.mask[group + 4])
    assert network(torch.rand(2, 3, 32, 32)).shape == (2, 50)


def test_every_exit_of_msdnet_is_trained() -> None:
    network = build("msdnet", {"exits": 3, "base": 1, "step": 1, "hidden": 8, "first": 4, "classes": 5})
    assert len(network.exits(torch.rand(2, 3, 32, 32))) == 3
    network.loss(torch.rand(2, 3, 32, 32), torch.tensor([0, 1])).backward()
    assert all(one.grad is not None for one in network.parameters())


@pytest.mark.parametrize(
    ("name", "message"),
    [("resnet", "6n"), ("resnext", "9n"), ("densenet", "6n"), ("wide-resnet", "6n"), ("shake-shake", "6n")],
)
def test_invalid_depths(name: str, message: str) -> None:
    with pytest.raises(OptionError, match=rf"{message}.*\d.*7"):
        build(name, {"depth": 7})


def test_the_number_of_classes_comes_from_the_data() -> None:
    assert build("resnet", {"depth": 8}, classes=7).classify.out_features == 7
    assert build("resnet", {"depth": 8, "classes": 5}, classes=7).classify.out_features == 5
    assert build("conv1", {}, classes=7)[-1].out_features == 7


def icon_recipe(name: str) -> Any:
    """One recipe is tried in `make test`, all of them every night; the rehearsal of the study trains each."""
    return pytest.param(name, marks=() if name == "icons-resnet20" else pytest.mark.nightly)


@pytest.mark.slow
@pytest.mark.parametrize("name", [icon_recipe(one) for one in recipe_names() if one.startswith("icons-")])
def test_every_recipe_of_icons_learns(name: str, tmp_path: Path) -> None:
    """Small versions get to know bars of five colors, mirrored and shifted."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(160) % 5
    images = torch.randint(0, 60, (160, 3, 32, 32), dtype=torch.uint8, generator=generator)
    colors = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]], dtype=torch.uint8)
    images[:, :, 8:24] = 230 * colors[labels][:, :, None, None]
    data = TrainingTensors("bars", tuple("abcde"), images, labels)
    tiny = (
        *definition("icons-50")["rehearsal"]["recipes"][name],
        "epochs=8",
        "batch=32",
        "rate=0.05",
        "intervention_options.shift=1",
    )
    made = train(get_recipe(name).changed(tiny), data, output=tmp_path, device="cpu")
    with torch.no_grad():
        right = made.model(images.float() / 255).argmax(1) == labels
    assert right.float().mean() > 0.6
    assert made.facts["losses"][-1] < made.facts["losses"][0] / 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("resnet", {"depth": 8, "width": -1}, "'resnet': .*negative"),
        ("resnext", {"depth": 11, "cardinality": 3, "base": 3.5}, "'resnext': .*divisible"),
        ("condensenet", {"layers": [1, 1]}, "'condensenet': zip"),
        ("multigrid-resnet", {"widths": []}, "'multigrid-resnet': list index"),
        ("resnet", {"depth": 9}, "^depth of a ResNet must be"),
        ("shake-shake", {"shake": "no"}, "^shake must be .*'no'"),
    ],
)
def test_invalid_options_are_reported(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build_network(name, options)

"""Trained networks as ONNX files: every architecture, in another runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort.training.architectures import BatchNorm, architectures, build
from beaufort.training.export import onnx_of

SMALL: dict[str, dict[str, Any]] = {
    "condensenet": {"layers": (2, 2, 2)},
    "conv1": {},
    "conv2": {},
    "conv3": {},
    "densenet": {"depth": 10, "growth": 4},
    "digits": {},
    "msdnet": {"exits": 2, "base": 2, "step": 1, "growth": 2, "first": 4, "hidden": 8},
    "multigrid-resnet": {"widths": ((4, 2), (4, 2), (4,)), "blocks": 1},
    "resnet": {"depth": 8, "width": 4},
    "resnext": {"depth": 11, "cardinality": 2, "base": 4},
    "shake-shake": {"depth": 8, "width": 4},
    "wide-resnet": {"depth": 10, "factor": 1},
}
UNWRITTEN = {"abs", "capsule", "stylizer"}
"""They do what has no plain counterpart, or are no classifiers."""


def onnx_outputs(content: bytes, images: Tensor) -> Any:
    runtime = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(content).run(None, {"image": images.numpy()})[0]


def test_all_are_looked_at() -> None:
    ours = {name for name in architectures if architectures[name].__module__.startswith("beaufort.")}
    assert {*SMALL, *UNWRITTEN} == ours


@pytest.mark.parametrize("name", SMALL)
def test_exported_networks_predict_alike(name: str) -> None:
    torch.manual_seed(0)
    network = build(name, SMALL[name], classes=10)
    shape = (1, 28, 28) if name in {"conv1", "conv2", "conv3", "digits"} else (3, 32, 32)
    with torch.no_grad():
        network.train()(torch.rand(8, *shape))  # statistics that are not those of the beginning
        images = torch.rand(3, *shape)
        expected = network.eval()(images)
    content = onnx_of(network, shape)
    np.testing.assert_allclose(onnx_outputs(content, images), expected, atol=1e-4)
    onnx = pytest.importorskip("onnx")
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)


def test_a_pruned_network_is_written_without_what_was_pruned() -> None:
    torch.manual_seed(0)
    network: Any = build("condensenet", SMALL["condensenet"], classes=10)
    network.on_progress(1.0)
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        expected = network.eval()(images)
    np.testing.assert_allclose(onnx_outputs(onnx_of(network, (3, 32, 32)), images), expected, atol=1e-4)


class Odd(nn.Module):
    """A convolution, and whatever is done with what it makes."""

    def __init__(self, rest: Any) -> None:
        super().__init__()
        self.conv, self.rest = nn.Conv2d(3, 4, 3), rest

    def forward(self, images: Tensor) -> Any:
        return self.rest(self.conv(images))


def hooked(layer: nn.Module) -> nn.Module:
    layer.register_forward_hook(lambda _, values, made: 2 * made)
    return layer


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (lambda x: functional.gelu(x).mean((2, 3)), "function gelu"),
        (lambda x: functional.avg_pool2d(x, 3, padding=1).mean((2, 3)), "arguments of avg_pool2d"),
        (lambda x: (x + 1).mean((2, 3)), "arguments of add"),
        (lambda x: (x.mean((2, 3)), x), "single output"),
        (lambda x: x[:, :, 0:3].mean((2, 3)), "arguments of getitem"),
        (nn.Softplus(), "layer Softplus"),
        (nn.Conv2d(4, 4, 3, dilation=2), "padding or dilation"),
        (lambda x: functional.conv2d(x, x).mean((2, 3)), "arguments of conv2d"),
        (nn.ReLU(), "not one row of logits"),
        (lambda x: functional.avg_pool2d(x, 4, 4, 0, True).mean((2, 3)), "arguments of avg_pool2d"),
        (nn.AvgPool2d(2, divisor_override=1), "arguments of AvgPool2d"),
        (nn.AvgPool2d(2, padding=1), "arguments of AvgPool2d"),
        (nn.MaxPool2d(2, return_indices=True), "arguments of MaxPool2d"),
        (nn.Flatten(2), "arguments of Flatten"),
        (nn.BatchNorm2d(4, bias=False), "without learned values"),
        (hooked(nn.ReLU()), "ReLU has hooks"),
    ],
)
def test_unsupported_networks(rest: Any, message: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"cannot export Odd: .*{message}"):
        onnx_of(Odd(rest).eval(), (3, 8, 8))


class Called(nn.Module):
    """Layers that are called in ways of their own."""

    def __init__(self, how: Any) -> None:
        super().__init__()
        self.conv, self.norm, self.classify = nn.Conv2d(3, 4, 3), BatchNorm(4, relu=True), nn.Linear(4, 5)
        self.learned, self.how = nn.Parameter(torch.rand(1, 4)), how

    def forward(self, images: Tensor) -> Any:
        return self.how(self, images)


def assert_alike(network: nn.Module, classes: int) -> None:
    images = torch.rand(2, 3, 8, 8)
    with torch.no_grad():
        expected = network.eval()(images)
    content = onnx_of(network, (3, 8, 8))
    np.testing.assert_allclose(onnx_outputs(content, images), expected, atol=1e-5)
    onnx = pytest.importorskip("onnx")
    (output,) = onnx.load_from_string(content).graph.output
    assert output.type.tensor_type.shape.dim[1].dim_value == classes


@pytest.mark.parametrize(
    ("how", "classes"),
    [
        (lambda self, x: self.norm(x := self.conv(x), beside=x).mean((2, 3)), 4),
        (lambda self, x: self.norm(x=self.conv(input=x)).mean((-2, -1)), 4),
        (lambda self, x: torch.cat([self.classify(self.conv(x).mean((2, 3)))] * 2, 1), 10),
        (lambda self, x: torch.lerp(x := self.classify(self.conv(x).mean((2, 3))), x, 0.3), 5),
    ],
)
def test_ways_to_call_a_layer(how: Any, classes: int) -> None:
    torch.manual_seed(0)
    assert_alike(Called(how), classes)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda self, x: self.classify(self.learned) + self.conv(x).mean((2, 3)), "arguments of classify"),
        (lambda self, x: self.learned, "single output"),
        (lambda self, x: self.norm(self.conv(x), self.learned[:, :, None, None]), "arguments of norm"),
    ],
)
def test_constants_are_not_features(how: Any, message: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"cannot export Called: .*{message}"):
        onnx_of(Called(how).eval(), (3, 8, 8))


def test_weights_that_are_made_of_others() -> None:
    torch.manual_seed(0)
    conv = nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3))
    assert_alike(nn.Sequential(conv, nn.Flatten(), nn.Linear(144, 5)), 5)

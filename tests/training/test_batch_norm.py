"""Batch normalization with the sum and ReLU that follow: by torch's own steps, and by kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from beaufort.training.architectures import BatchNorm

Shape = tuple[int, int, int, int]
FEW: list[Shape] = [(3, 16, 5, 7), (9, 15, 16, 16), (1, 130, 3, 5)]
"""Channels of a multiple of 8 and not, more than a tile has of them and of places, and fewer."""
MANY: list[Shape] = [*FEW, (64, 24, 32, 32), (512, 16, 32, 32), (16, 480, 8, 8)]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1e-2}
"""Of the norm of the differences, of that of the values."""


def layer(channels: int, *, relu: bool) -> BatchNorm:
    """One with random weights, and statistics that are not those of the beginning."""
    made = BatchNorm(channels, relu=relu)
    for one in (made.weight, made.bias, made.running_mean):
        assert one is not None
        nn.init.normal_(one)
    assert made.running_var is not None
    nn.init.uniform_(made.running_var, 0.5, 2)
    return made


def plain(norm: nn.BatchNorm2d, x: Tensor, beside: Tensor | None, relu: bool) -> Tensor:
    """The reference computation, one step after the other."""
    y = nn.BatchNorm2d.forward(norm, x)
    y = y if beside is None else y + beside
    return functional.relu(y) if relu else y


def assert_near(found: Tensor, expected: Tensor, tolerance: float) -> None:
    expected = expected.to(found.device)
    assert float((found.double() - expected).norm()) <= tolerance * float(expected.norm()) + 1e-12


def compare(device: str, dtype: torch.dtype, shape: Shape, relu: bool, add: bool, track: bool) -> None:
    """The kernels of a layer compared with torch in float64: forward, backward, statistics, evaluation."""
    generator = torch.Generator().manual_seed(1)
    x, other, slope = (
        (torch.randn(shape, generator=generator) * scale + shift).to(device, dtype)
        .contiguous(memory_format=torch.channels_last)
        for scale, shift in ((3.0, 50.0), (1.0, 0.0), (1.0, 0.0))
    )  # fmt: skip
    ours = layer(shape[1], relu=relu).to(device)
    theirs = nn.BatchNorm2d(shape[1]).double().to(device)
    theirs.load_state_dict(ours.state_dict())
    ours.track_running_stats = theirs.track_running_stats = track
    here, beside = x.clone().requires_grad_(), other.clone().requires_grad_()
    there, far = x.double().requires_grad_(), other.double().requires_grad_()
    before = plain(theirs, there, far if add else None, relu=False)
    slope = torch.where(before.detach().abs() > 0.01, slope, 0)  # nearer to 0 rounding decides about ReLU
    expected = functional.relu(before) if relu else before
    torch.autograd.backward(expected, slope.double())
    y = ours(here, beside if add else None)
    assert type(y.grad_fn).__name__ == "_LearningBackward"
    assert y.dtype == dtype
    assert y.is_contiguous(memory_format=torch.channels_last)
    torch.autograd.backward(y, slope)
    pairs = [(y, expected), (here.grad, there.grad), (ours.weight.grad, theirs.weight.grad)]
    pairs += [(ours.bias.grad, theirs.bias.grad)] + ([(beside.grad, far.grad)] if add else [])
    pairs += [(ours.running_mean, theirs.running_mean), (ours.running_var, theirs.running_var)]
    for found, wanted in pairs:
        assert found is not None
        assert wanted is not None
        assert_near(found.detach(), wanted.detach(), TOLERANCE[dtype])
    assert ours.num_batches_tracked == theirs.num_batches_tracked == int(track)
    if track:
        with torch.no_grad():
            evaluated = ours.eval()(x, other if add else None)
            assert_near(
                evaluated,
                plain(theirs.eval(), x.double(), other.double() if add else None, relu),
                TOLERANCE[dtype],
            )


def compare_all(device: str, shapes: list[Shape]) -> None:
    for case in product(TOLERANCE, shapes, (False, True), (False, True), (False, True)):
        compare(device, *case)


def compare_what_is_no_number(device: str) -> None:
    """It is not made a number by ReLU, neither in features nor in slopes nor in the statistics."""
    for wrong, add in product((float("nan"), float("inf")), (False, True)):
        x = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1)).to(device)
        x[0, 0, 1, 1] = wrong
        x = x.contiguous(memory_format=torch.channels_last)
        ours, theirs = BatchNorm(3, relu=True).to(device), nn.BatchNorm2d(3).to(device)
        here, there, beside = x.clone().requires_grad_(), x.clone().requires_grad_(), x if add else None
        found, wanted = ours(here, beside), plain(theirs, there, beside, relu=True)
        assert type(found.grad_fn).__name__ == "_LearningBackward"
        torch.autograd.backward([found, wanted], [torch.ones_like(x)] * 2)
        pairs = [(found, wanted), (here.grad, there.grad), (ours.running_var, theirs.running_var)]
        with torch.no_grad():
            pairs += [(BatchNorm(3, relu=True).to(device).eval()(x), functional.relu(x))]
        for one, other in pairs:
            assert one is not None
            assert other is not None
            assert torch.equal(one.isnan(), other.isnan())


def check_what_torch_does(device: str) -> None:
    """Numbers that are longer, layers without some of their tensors, and a trace, which sees no kernels."""
    x = torch.randn(2, 6, 5, 4, generator=torch.Generator().manual_seed(1)).to(device)
    x = x.contiguous(memory_format=torch.channels_last)
    exact = layer(6, relu=True).to(device).double()
    assert torch.equal(exact(x.double()), plain(exact, x.double(), None, relu=True))
    for missing in (("running_mean", "running_var"), ("weight", "bias"), ("num_batches_tracked",)):
        norm = layer(6, relu=True).to(device)
        for name in missing:
            setattr(norm, name, None)
        for mode in (True, False):
            with torch.no_grad():
                assert torch.equal(norm.train(mode)(x), plain(norm, x, None, relu=True))
    norm = layer(6, relu=True).to(device).eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*torch.jit.trace")
        traced = torch.jit.trace(norm, x, check_trace=False)  # type: ignore[no-untyped-call]
        assert torch.equal(traced(2 * x), plain(norm, 2 * x, None, relu=True))


def check_slopes_of_slopes(device: str) -> None:
    """Kernels do not give them, and say so: a penalty on slopes would have no part in learning."""
    x = torch.randn(2, 3, 4, 4, device=device).contiguous(memory_format=torch.channels_last).requires_grad_()
    y = BatchNorm(3, relu=True).to(device)(x)
    (slope,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.backward(y.sum() + slope.square().sum())


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("add", [False, True])
def test_on_the_processor_it_is_torchs_own_bit_for_bit(relu: bool, add: bool) -> None:
    torch.manual_seed(0)
    ours, x = layer(6, relu=relu), torch.randn(2, 6, 5, 4)
    theirs = nn.BatchNorm2d(6)
    theirs.load_state_dict(ours.state_dict())
    beside = torch.randn_like(x) if add else None
    for mode in (True, False):
        assert torch.equal(ours.train(mode)(x, beside), plain(theirs.train(mode), x, beside, relu))
    assert torch.equal(ours.state_dict()["running_var"], theirs.state_dict()["running_var"])


def test_a_compiler_sees_torchs_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_KERNELS", "1")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    torch.manual_seed(0)
    norm, x = layer(6, relu=True).eval(), torch.randn(2, 6, 5, 4).to(memory_format=torch.channels_last)
    compiled = torch.compile(norm, backend="eager", fullgraph=True)
    with torch.no_grad():
        assert torch.equal(compiled(x, x), plain(norm, x, x, relu=True))


@pytest.mark.slow
@pytest.mark.parametrize("shapes", ["one", pytest.param("few", marks=pytest.mark.nightly)])
def test_kernels_in_tritons_interpreter(shapes: str) -> None:
    """Run without a GPU in a new process, because Triton reads its environment on import."""
    pytest.importorskip("triton", reason="Triton is not installed")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "BEAUFORT_KERNELS": "1"}
    subprocess.run([sys.executable, __file__, shapes], check=True, env=environment)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is there")
def test_kernels_on_a_gpu() -> None:
    compare_all("cuda", MANY)
    compare_what_is_no_number("cuda")
    check_what_torch_does("cuda")
    check_slopes_of_slopes("cuda")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is there")
def test_kernels_repeat_bit_for_bit() -> None:
    torch.manual_seed(0)
    x = torch.randn(512, 40, 16, 16, device="cuda", dtype=torch.bfloat16)
    x = x.contiguous(memory_format=torch.channels_last)
    found = []
    for _ in range(3):
        torch.manual_seed(1)
        norm, value = layer(40, relu=True).cuda(), x.clone().requires_grad_()
        torch.autograd.backward(norm(value, x), x)
        assert value.grad is not None
        assert norm.weight.grad is not None
        found.append((value.grad, norm.weight.grad, norm.state_dict()["running_var"]))
    for again in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], again, strict=True))


if __name__ == "__main__":
    compare_all("cpu", FEW if sys.argv[1] == "few" else FEW[:1])
    compare_what_is_no_number("cpu")
    check_what_torch_does("cpu")
    check_slopes_of_slopes("cpu")

"""Batch normalization fused with the addition and ReLU that follow it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from beaufort._core.device import use_kernels


class BatchNorm(nn.BatchNorm2d):
    """Batch normalization, then an optional addition of other features, then an optional ReLU.

    On a GPU with channels-last memory, own kernels do all of it: networks for small images spend a third to a
    half of their training time in these steps. Otherwise torch does.
    """

    def __init__(self, features: int, *, relu: bool = False) -> None:
        super().__init__(features)
        self.relu = relu

    def forward(self, x: Tensor, beside: Tensor | None = None) -> Tensor:
        """Return features of the same shape."""
        if _fits(x, beside) and self._is_usual():
            if self.training:
                found: Tensor = _Learning.apply(x, self.weight, self.bias, beside, self)
                return found
            if not torch.is_grad_enabled() and self.track_running_stats:
                return _evaluated(self, x, beside)
        y = super().forward(x)
        y = y if beside is None else y + beside
        return functional.relu(y) if self.relu else y

    def _is_usual(self) -> bool:
        """Return whether no tensor of the layer was removed, which torch supports and the kernels do not."""
        statistics = (self.running_mean, self.running_var, self.num_batches_tracked)
        needed = (self.momentum, self.weight, self.bias, *(statistics if self.track_running_stats else ()))
        return all(one is not None for one in needed)

    def extra_repr(self) -> str:
        """Return the description of torch, and whether ReLU follows."""
        return f"{super().extra_repr()}, relu={self.relu}"


_DTYPES = frozenset({torch.float16, torch.bfloat16, torch.float32})
"""Types for which the kernels' float32 arithmetic is exact enough."""


def _fits(x: Tensor, beside: Tensor | None) -> bool:
    """Return whether the kernels can be used; compilers and tracers need torch's operations."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined]
        return False
    alike = beside is None or (beside.dtype == x.dtype and beside.shape == x.shape and _channels_last(beside))
    return use_kernels(x) and alike and _channels_last(x) and x.dtype in _DTYPES and x.numel() > x.shape[1]


def _channels_last(x: Tensor) -> bool:
    return x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)


def _evaluated(norm: BatchNorm, x: Tensor, beside: Tensor | None) -> Tensor:
    from beaufort.training.architectures._batch_norm_kernels import normalize

    with _device_of(x):
        found: Tensor = normalize(
            x,
            norm.running_mean,
            norm.running_var,
            norm.weight,
            norm.bias,
            beside,
            epsilon=norm.eps,
            relu=norm.relu,
        )
    return found


class _Learning(torch.autograd.Function):
    """Normalization with the mean and variance of the batch."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, beside: Tensor | None, norm: BatchNorm
    ) -> Tensor:
        from beaufort.training.architectures._batch_norm_kernels import normalize_learning

        with _device_of(x):
            out, moments = normalize_learning(x, norm, beside, relu=norm.relu)
        ctx.epsilon, ctx.relu = norm.eps, norm.relu
        ctx.save_for_backward(x, weight, bias, moments, None if beside is None else out)
        found: Tensor = out
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None, None]:
        from beaufort.training.architectures._batch_norm_kernels import normalize_back

        x, weight, bias, moments, out = ctx.saved_tensors
        slope = slopes[0].contiguous(memory_format=torch.channels_last)
        with _device_of(x):
            back, learned, beside = normalize_back(
                x, moments, weight, bias, slope, out, epsilon=ctx.epsilon, relu=ctx.relu
            )
        return back, learned[1], learned[0], None if out is None else beside, None


def _device_of(x: Tensor) -> Any:
    """Make the device of the features the current one, for kernels."""
    return torch.cuda.device(x.device if x.is_cuda else -1)

"""Conversion of torch layers and functions to ONNX operations, in evaluation mode."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from beaufort.training.architectures import BatchNorm, Normalize


class Weight(NamedTuple):
    """A tensor that is stored in the file."""

    name: str
    values: Tensor


class _Before:
    """Stands for the output of the previous operation."""


BEFORE = _Before()
Input = fx.Node | Weight | _Before


@dataclass(frozen=True)
class OnnxPart:
    """One of the consecutive operations of a layer or function."""

    operation: str
    inputs: tuple[Input, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


def layer_parts(layer: nn.Module, *values: Any) -> list[OnnxPart]:
    """Return the operations of a layer; raise `NotImplementedError` if it is not supported."""
    name = type(layer).__name__
    if layer._forward_hooks or layer._forward_pre_hooks:
        raise NotImplementedError(f"{name} has hooks")
    for kind, write in _LAYERS.items():
        if isinstance(layer, kind):
            return _written(name, write, layer, *values)
    raise NotImplementedError(f"unsupported layer {name}")


def call_parts(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[OnnxPart]:
    """Return the operations of a function or method call; raise `NotImplementedError` if unsupported."""
    name = getattr(target, "__name__", str(target))
    write = _CALLS.get(target)
    if write is None:
        raise NotImplementedError(f"unsupported function {name}")
    return _written(name, write, *args, **kwargs)


def _written(name: str, write: Callable[..., list[OnnxPart]], *args: Any, **kwargs: Any) -> list[OnnxPart]:
    try:
        return write(*args, **kwargs)
    except (TypeError, ValueError) as error:  # the converter does not know these arguments
        raise NotImplementedError(f"unsupported arguments of {name}") from error


def _learned(layer: Any) -> tuple[Weight, ...]:
    """Return weight and bias as the layer uses them, also under weight normalization."""
    both = (Weight("weight", layer.weight), Weight("bias", layer.bias))
    return tuple(one for one in both if one.values is not None)


def _conv_layer(layer: Any, value: fx.Node) -> list[OnnxPart]:
    if isinstance(layer.padding, str) or layer.padding_mode != "zeros" or set(layer.dilation) != {1}:
        raise NotImplementedError("unsupported padding or dilation of a convolution")
    attributes = {
        "kernel_shape": layer.kernel_size,
        "strides": layer.stride,
        "pads": (*layer.padding, *layer.padding),
        "group": layer.groups,
    }
    return [OnnxPart("Conv", (value, *_learned(layer)), attributes)]


def _conv(value: fx.Node, weights: Tensor) -> list[OnnxPart]:
    """Convert a convolution with computed weights, such as masked ones; stride 1, no padding."""
    if not isinstance(weights, Tensor):  # computed from the image
        raise ValueError
    return [OnnxPart("Conv", (value, Weight("weight", weights)), {"kernel_shape": tuple(weights.shape[2:])})]


def _batch_norm(layer: Any, value: fx.Node) -> list[OnnxPart]:
    if layer.running_mean is None or layer.weight is None or layer.bias is None:
        raise NotImplementedError("unsupported batch normalization without learned values")
    moments = (Weight("running_mean", layer.running_mean), Weight("running_var", layer.running_var))
    return [
        OnnxPart("BatchNormalization", (value, *_learned(layer), *moments), {"epsilon": float(layer.eps)})
    ]


def _batch_norm_and_more(layer: Any, value: fx.Node, beside: fx.Node | None = None) -> list[OnnxPart]:
    added = [] if beside is None else [OnnxPart("Add", (BEFORE, beside))]
    return [*_batch_norm(layer, value), *added, *([OnnxPart("Relu", (BEFORE,))] if layer.relu else [])]


def _normalize(layer: Any, value: fx.Node) -> list[OnnxPart]:
    centered = OnnxPart("Sub", (value, Weight("mean", layer.mean)))
    return [centered, OnnxPart("Div", (BEFORE, Weight("std", layer.std)))]


def _linear(layer: Any, value: fx.Node) -> list[OnnxPart]:
    return [OnnxPart("Gemm", (value, *_learned(layer)), {"transB": 1})]


def _average_pool(
    value: fx.Node,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> list[OnnxPart]:
    if divisor_override is not None:
        raise ValueError
    return _pool("AveragePool", value, kernel_size, stride, padding, ceil_mode)


def _max_pool(
    value: fx.Node,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> list[OnnxPart]:
    if _two(dilation) != (1, 1) or return_indices:
        raise ValueError
    return _pool("MaxPool", value, kernel_size, stride, padding, ceil_mode)


def _pool(
    operation: str, value: fx.Node, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool
) -> list[OnnxPart]:
    if _two(padding) != (0, 0) or ceil_mode:
        raise ValueError
    shape = {"kernel_shape": _two(kernel_size), "strides": _two(stride or kernel_size)}
    return [OnnxPart(operation, (value,), shape)]


def _pool_layer(write: Callable[..., list[OnnxPart]]) -> Callable[[Any, fx.Node], list[OnnxPart]]:
    """Convert a layer like its function, whose options are attributes of the layer."""
    _, *options = signature(write).parameters
    return lambda layer, value: write(value, **{name: getattr(layer, name) for name in options})


def _flatten(layer: Any, value: fx.Node) -> list[OnnxPart]:
    if (layer.start_dim, layer.end_dim) != (1, -1):
        raise ValueError
    return [OnnxPart("Flatten", (value,))]


def _two(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _add(first: Any, second: Any) -> list[OnnxPart]:
    if not (isinstance(first, fx.Node) and isinstance(second, fx.Node)):
        raise ValueError
    return [OnnxPart("Add", (first, second))]


def _concatenate(values: Sequence[fx.Node], dim: int = 0) -> list[OnnxPart]:
    return [OnnxPart("Concat", tuple(values), {"axis": dim})]


def _mean(value: fx.Node, dim: Sequence[int], keepdim: bool = False) -> list[OnnxPart]:
    return [OnnxPart("ReduceMean", (value,), {"axes": tuple(dim), "keepdims": int(keepdim)})]


def _lerp(start: fx.Node, end: fx.Node, weight: float | Tensor) -> list[OnnxPart]:
    """`start + weight * (end - start)`."""
    scale = Weight("share", torch.as_tensor(weight, dtype=torch.float32))
    return [OnnxPart("Sub", (end, start)), OnnxPart("Mul", (BEFORE, scale)), OnnxPart("Add", (BEFORE, start))]


def _interpolate(value: fx.Node, *, scale_factor: float, mode: str, **others: Any) -> list[OnnxPart]:
    if mode != "nearest" or float(scale_factor) != int(scale_factor) or any(others.values()):
        raise ValueError
    scales = Weight("scales", torch.tensor([1.0, 1.0, float(scale_factor), float(scale_factor)]))
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return [OnnxPart("Resize", (value, Weight("", torch.empty(0)), scales), how)]


def _slice(value: fx.Node, places: Sequence[slice]) -> list[OnnxPart]:
    """Convert slices with a start and a step, to the end, such as every second pixel."""
    if any(not isinstance(one, slice) or one.stop is not None for one in places):
        raise ValueError
    starts = [one.start or 0 for one in places]
    steps = [one.step or 1 for one in places]
    columns = {
        "starts": starts,
        "ends": [2**31 - 1] * len(starts),
        "axes": range(len(starts)),
        "steps": steps,
    }
    numbers = (Weight(name, torch.tensor(list(column))) for name, column in columns.items())
    return [OnnxPart("Slice", (value, *numbers))]


_LAYERS: Mapping[type[nn.Module], Callable[..., list[OnnxPart]]] = {
    BatchNorm: _batch_norm_and_more,
    Normalize: _normalize,
    nn.AvgPool2d: _pool_layer(_average_pool),
    nn.BatchNorm2d: _batch_norm,
    nn.Conv2d: _conv_layer,
    nn.Flatten: _flatten,
    nn.Linear: _linear,
    nn.MaxPool2d: _pool_layer(_max_pool),
    nn.ReLU: lambda _, value: [OnnxPart("Relu", (value,))],
}
_CALLS: Mapping[Any, Callable[..., list[OnnxPart]]] = {
    "mean": _mean,
    functional.avg_pool2d: _average_pool,
    functional.conv2d: _conv,
    functional.interpolate: _interpolate,
    functional.max_pool2d: _max_pool,
    functional.relu: lambda value, **_: [OnnxPart("Relu", (value,))],
    operator.add: _add,
    operator.getitem: _slice,
    torch.cat: _concatenate,
    torch.lerp: _lerp,
    torch.relu: lambda value: [OnnxPart("Relu", (value,))],
}

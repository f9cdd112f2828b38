"""An ONNX file as torch operations in float32, so that a network runs on a GPU and its layers can be changed.

`renormalizing_lines` re-estimates batch normalization behind an image filter, for networks in which it is
folded into convolutions. Normalization brings the output of a convolution to a learned mean and deviation,
which are those of plain photos up to chance; behind a filter, outputs have others. Each layer's statistics
are restored in turn, so that it sees what the restored layers before it output. Labels are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from beaufort.models.spec import ModelFileError

Watch = Callable[[str, Tensor], Tensor]
"""Receives the name and output of a convolution and returns what the rest of the network receives."""


class GraphNode(NamedTuple):
    """One operation."""

    kind: str
    inputs: tuple[str, ...]
    output: str
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class GraphNetwork:
    """A network from images `(n, 3, h, w)` in 0..1 to logits."""

    nodes: tuple[GraphNode, ...]
    constants: Mapping[str, Tensor]
    image: str
    output: str

    def __call__(self, images: Tensor, watch: Watch | None = None) -> Tensor:
        values: dict[str, Tensor] = {self.image: images}
        last = {name: place for place, node in enumerate(self.nodes) for name in node.inputs}
        for place, node in enumerate(self.nodes):
            inputs = [
                values[name] if name in values else self.constants[name] for name in node.inputs if name
            ]
            result = _OPERATIONS[node.kind](node.options, *inputs)
            values[node.output] = watch(node.output, result) if watch and node.kind == "Conv" else result
            for name in node.inputs:
                if last[name] == place:
                    values.pop(name, None)
        return values[self.output].flatten(1)

    def without_last_layer(self) -> GraphNetwork:
        """Return the network up to the input of its last layer with weights."""
        place, last = max(
            (i, node) for i, node in enumerate(self.nodes) if node.kind in ("Conv", "Gemm", "MatMul")
        )
        return replace(self, nodes=self.nodes[:place], output=last.inputs[0])

    def scaled(self, lines: Lines) -> GraphNetwork:
        """Return the network with `factor * output + offset` for each channel of some convolutions."""
        nodes, constants = [], dict(self.constants)
        for node in self.nodes:
            if node.output in lines:
                factor, offset = (one.to(self.constants[node.inputs[1]]) for one in lines[node.output])
                weight, bias = (f"{node.output} {part}, scaled" for part in ("weight", "bias"))
                known = constants[node.inputs[2]] if len(node.inputs) > 2 else torch.zeros_like(offset)
                constants[weight] = constants[node.inputs[1]] * factor[:, None, None, None]
                constants[bias] = known * factor + offset
                node = node._replace(inputs=(node.inputs[0], weight, bias))
            nodes.append(node)
        return replace(self, nodes=tuple(nodes), constants=constants)


def open_graph(path: Path, device: str = "cpu") -> GraphNetwork:
    """Return the network of an ONNX file, with operations on constants, such as unpacking, already done."""
    import onnx
    from onnx import helper, numpy_helper

    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # protobuf's errors have no other common base
        raise ModelFileError(f"cannot read {path} as an ONNX file: {error!s:.80}") from None
    constants = {
        one.name: torch.from_numpy(np.array(numpy_helper.to_array(one))).to(device)
        for one in graph.initializer
    }
    nodes = []
    for one in graph.node:
        if one.op_type not in _OPERATIONS:
            known = ", ".join(sorted(_OPERATIONS))
            raise ModelFileError(f"{path} has the unsupported operation {one.op_type}; supported: {known}")
        options = {part.name: helper.get_attribute_value(part) for part in one.attribute}
        node = GraphNode(one.op_type, tuple(one.input), one.output[0], options)
        if all(name in constants for name in node.inputs if name):
            values = [constants[name] for name in node.inputs if name]
            constants[node.output] = _OPERATIONS[node.kind](options, *values)
        else:
            nodes.append(node)
    used = {name for node in nodes for name in node.inputs}
    kept = {name: value for name, value in constants.items() if name in used}
    image = next(one.name for one in graph.input if one.name not in constants)
    return GraphNetwork(tuple(nodes), kept, image, graph.output[0].name)


def _conv(options: Mapping[str, Any], x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    x, padding = _pad(options, x, 0.0)
    strides, dilations = options.get("strides", [1, 1]), options.get("dilations", [1, 1])
    return functional.conv2d(x, weight, bias, strides, padding, dilations, options.get("group", 1))


def _max_pool(options: Mapping[str, Any], x: Tensor) -> Tensor:
    x, padding = _pad(options, x, -torch.inf)
    kernel, strides = options["kernel_shape"], options.get("strides", [1, 1])
    ceil = bool(options.get("ceil_mode", 0))
    return functional.max_pool2d(x, kernel, strides, padding, ceil_mode=ceil)


def _pad(options: Mapping[str, Any], x: Tensor, value: float) -> tuple[Tensor, tuple[int, int]]:
    """Return the input, padded if its borders differ, and the padding that the operation can add itself."""
    top, left, bottom, right = options.get("pads", [0, 0, 0, 0])
    if (top, left) == (bottom, right):
        return x, (top, left)
    return functional.pad(x, (left, right, top, bottom), value=value), (0, 0)


def _clip(
    options: Mapping[str, Any], x: Tensor, low: Tensor | None = None, high: Tensor | None = None
) -> Tensor:
    bounds = (options.get("min", low), options.get("max", high))
    low_high = [None if one is None else float(one) for one in bounds]
    clipped: Tensor = torch.clamp(x, *low_high)
    return clipped


def _gemm(options: Mapping[str, Any], x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product: Tensor = x @ (weight.T if options.get("transB", 0) else weight) * options.get("alpha", 1.0)
    return product if bias is None else product + options.get("beta", 1.0) * bias


def _mean(options: Mapping[str, Any], x: Tensor, axes: Tensor | None = None) -> Tensor:
    chosen = [int(one) for one in (options["axes"] if axes is None else axes)]
    return x.mean(chosen, keepdim=bool(options.get("keepdims", 1)))


def _dequantize(options: Mapping[str, Any], x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """Return 8-bit weights as numbers, with one scale for all or one per channel."""
    shape = [1] * x.ndim
    if scale.numel() > 1:
        shape[options.get("axis", 1)] = -1
    middle = 0.0 if zero is None else zero.float().reshape(shape if zero.numel() > 1 else [1] * x.ndim)
    values: Tensor = (x.float() - middle) * scale.float().reshape(shape)
    return values


_OPERATIONS: Mapping[str, Callable[..., Tensor]] = {
    "Add": lambda _, x, y: x + y,
    "AveragePool": lambda o, x: functional.avg_pool2d(x, o["kernel_shape"], o.get("strides", [1, 1])),
    "Cast": lambda o, x: x.float() if o["to"] == 1 else x,  # computations are in float32 in any case
    "Clip": _clip,
    "Concat": lambda o, *parts: torch.cat(parts, o["axis"]),
    "Conv": _conv,
    "DequantizeLinear": _dequantize,
    "Div": lambda _, x, y: x / y,
    "Flatten": lambda o, x: x.flatten(o.get("axis", 1)),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda _, x: x.mean((2, 3), keepdim=True),
    "Identity": lambda _, x: x,
    "MatMul": lambda _, x, y: x @ y,
    "MaxPool": _max_pool,
    "Mul": lambda _, x, y: x * y,
    "ReduceMean": _mean,
    "Relu": lambda _, x: x.relu(),
    "Reshape": lambda _, x, shape: x.reshape([len(x) if n == 0 else int(n) for n in shape]),
    "Sub": lambda _, x, y: x - y,
}

Lines = dict[str, tuple[Tensor, Tensor]]
"""Factor and offset of each channel, by the convolution that they follow."""

_LEAST = 1e-5
"""Deviation below which a channel is not rescaled."""


def renormalizing_lines(network: GraphNetwork, plain: Tensor, filtered: Tensor) -> Lines:
    """Return the lines that restore the means and deviations of convolutions' outputs behind a filter.

    Both are the same photos in 0..1, without and behind the filter. A convolution whose output has one
    position, a classifier, is left unchanged.
    """
    wanted: dict[str, tuple[Tensor, Tensor]] = {}
    lines: Lines = {}

    def measure(name: str, output: Tensor) -> Tensor:
        if output.shape[2:].numel() > 1:
            wanted[name] = torch.std_mean(output, dim=(0, 2, 3), correction=0)
        return output

    def restore(name: str, output: Tensor) -> Tensor:
        if name not in wanted:
            return output
        (spread, mean), (found, middle) = wanted[name], torch.std_mean(output, dim=(0, 2, 3), correction=0)
        factor = torch.where(found > _LEAST, spread / found.clamp_min(_LEAST), 1.0)
        lines[name] = factor, mean - factor * middle
        return output * factor[:, None, None] + lines[name][1][:, None, None]

    with torch.no_grad():
        network(plain, measure)
        network(filtered, restore)
    return lines

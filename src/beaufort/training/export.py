"""Export of a trained network to ONNX, without packages beyond torch.

The network is traced by `torch.fx`, and each layer and function becomes ONNX operations. Networks with other
operations (routing between capsules, optimization at test time) cannot be exported; the trained model can
still be used as `trained:name`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from beaufort._core.files import write_bytes
from beaufort.models.onnx_format import RESIZE, Node, onnx_bytes
from beaufort.training._onnx_parts import BEFORE, OnnxPart, Weight, call_parts, layer_parts
from beaufort.training.architectures import BatchNorm, Normalize


class _Tracer(fx.Tracer):
    """A tracer that does not look inside layers that are exported as a whole."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, BatchNorm | Normalize) or super().is_leaf_module(m, module_qualified_name)


def export_onnx(model: nn.Module, path: Path, shape: tuple[int, int, int], names: Sequence[str] = ()) -> str:
    """Write an ONNX file; return its name, or why it was not written."""
    try:
        content = onnx_of(model.eval(), shape, names)
    except NotImplementedError as error:
        return f"none: {error}"
    write_bytes(path, content)
    return path.name


def onnx_of(model: nn.Module, shape: tuple[int, int, int], names: Sequence[str] = ()) -> bytes:
    """Return the ONNX file of a network of values in 0..1; raise `NotImplementedError` if that is impossible.

    Its metadata contain the class names and the input size, so that it is evaluated like the trained model.
    """
    try:
        graph = fx.GraphModule(model, _Tracer().trace(model)).graph
    except Exception as error:  # the forward method is arbitrary Python code
        raise NotImplementedError(f"cannot trace {type(model).__name__}") from error
    graph.eliminate_dead_code()  # such as unused exits
    try:
        return _Writer(model).write(graph, shape, names)
    except Exception as error:  # a failed export must not lose a training run
        raise NotImplementedError(f"cannot export {type(model).__name__}: {error}") from error


class _Writer:
    """Converts the nodes of a traced network in order."""

    def __init__(self, model: nn.Module) -> None:
        self.modules = dict(model.named_modules())
        self.model = model
        self.nodes: list[Node] = []
        self.weights: dict[str, NDArray[Any]] = {}
        self.names: dict[fx.Node, str] = {}
        self.constants: dict[fx.Node, Tensor] = {}
        """Values that do not depend on the image."""

    def write(self, graph: fx.Graph, shape: tuple[int, int, int], names: Sequence[str]) -> bytes:
        for node in graph.nodes:
            self._one(node)
        last = self.nodes.pop()
        self.nodes.append(Node(last.operation, last.inputs, "logits", last.attributes))
        classes = _logits_of(self.model, shape)
        metadata = {RESIZE: json.dumps(shape[1:])} | ({"names": json.dumps(list(names))} if names else {})
        return onnx_bytes(
            "network", self.nodes, self.weights, image=shape, classes=classes, metadata=metadata
        )

    def _one(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            if self.names:
                raise NotImplementedError("the network has more than one input")
            self.names[node] = "image"
        elif node.op == "output":
            self._check_end(node.args[0])
        elif node.op == "get_attr":
            self.constants[node] = _attribute(self.model, str(node.target))
        elif node.op == "call_module":
            self._layer(node, self.modules[str(node.target)])
        elif self._is_constant(node):
            self.constants[node] = _called(node, self.constants)
        else:
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda one: self.constants.get(one, one))
            self._add(node, call_parts(node.target, args, kwargs))

    def _check_end(self, value: Any) -> None:
        if not self.nodes or not isinstance(value, fx.Node) or self.names.get(value) != self.nodes[-1].output:
            raise NotImplementedError("the network does not have a single output")

    def _layer(self, node: fx.Node, layer: nn.Module) -> None:
        values = signature(layer.forward).bind(*node.args, **node.kwargs).args
        if isinstance(layer, nn.Dropout | nn.Identity):
            self.names[node] = self._input(values[0], node)
        else:
            self._add(node, layer_parts(layer, *values))

    def _is_constant(self, node: fx.Node) -> bool:
        made = node.op == "call_function" and bool(node.all_input_nodes)
        return made and all(one in self.constants for one in node.all_input_nodes)

    def _add(self, node: fx.Node, parts: list[OnnxPart]) -> None:
        for number, part in enumerate(parts, 1):
            inputs = tuple(self._input(one, node) for one in part.inputs)
            name = node.name if number == len(parts) else f"{node.name}.{number}"
            self.nodes.append(Node(part.operation, inputs, name, part.attributes))
        self.names[node] = node.name

    def _input(self, value: Any, node: fx.Node) -> str:
        if value is BEFORE:
            return self.nodes[-1].output
        if isinstance(value, fx.Node) and value in self.names:
            return self.names[value]
        if not isinstance(value, Weight):
            raise NotImplementedError(f"unsupported arguments of {node.name}")
        if not value.name:  # an input that is left out
            return ""
        name = f"{node.name}.{value.name}"
        self.weights[name] = _values(value.values)
        return name


def _logits_of(model: nn.Module, shape: tuple[int, int, int]) -> int:
    """Return the number of logits."""
    device = next((one.device for one in model.parameters()), None)
    with torch.no_grad():
        found = model(torch.zeros(1, *shape, device=device))
    if found.dim() != 2:
        raise NotImplementedError("the output is not one row of logits per image")
    return int(found.shape[1])


def _attribute(model: nn.Module, target: str) -> Tensor:
    owner, _, name = target.rpartition(".")
    found: Tensor = getattr(model.get_submodule(owner), name)
    return found


def _called(node: fx.Node, constants: dict[fx.Node, Tensor]) -> Tensor:
    """Return the result of a function of constants."""
    assert callable(node.target)
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), constants.__getitem__)
    found: Tensor = node.target(*args, **kwargs)
    return found


def _values(tensor: Tensor) -> NDArray[Any]:
    """Return a copy of a tensor as a float32 or int64 array."""
    kind = np.float32 if tensor.is_floating_point() else np.int64
    found: NDArray[Any] = tensor.detach().cpu().contiguous().numpy().astype(kind)
    return found

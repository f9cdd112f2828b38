"""A trained network as an ONNX file, in the house's own writer: no package beyond torch is needed.

The network is followed by `torch.fx`, and each layer becomes an operation of ONNX. Layers that have no plain
counterpart (routing between capsules, optimization at test time) cannot be written; the trained model is
then used as `trained:name`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import fx, nn

from beaufort.files import write_bytes
from beaufort.models._onnx_write import Node, onnx_bytes
from beaufort.training.architectures import Normalize

__all__ = ["export_onnx", "onnx_of"]

Weights = dict[str, NDArray[np.float32]]


class _Tracer(fx.Tracer):
    """Follows a network, and takes the layers that are written below as they are."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, Normalize) or super().is_leaf_module(m, module_qualified_name)


def export_onnx(model: nn.Module, path: Path, shape: tuple[int, int, int]) -> str:
    """Write the file; gives its name, or why there is none."""
    try:
        content = onnx_of(model.eval(), shape)
    except NotImplementedError as error:
        return f"none: {error}"
    write_bytes(path, content)
    return path.name


def onnx_of(model: nn.Module, shape: tuple[int, int, int]) -> bytes:
    """The file of a network of values in 0..1; `NotImplementedError` if a layer has no counterpart."""
    try:
        graph = _Tracer().trace(model)
    except Exception as error:  # a network may do in Python what it likes
        raise NotImplementedError(f"{type(model).__name__} cannot be followed layer by layer") from error
    modules = dict(model.named_modules())
    nodes: list[Node] = []
    weights: Weights = {}
    names: dict[str, str] = {}
    last = None
    for node in graph.nodes:
        if node.op == "placeholder":
            names[node.name] = "image"
        elif node.op == "call_module":
            layer = modules[str(node.target)]
            if isinstance(layer, nn.Dropout | nn.Identity):
                names[node.name] = names[node.args[0].name]
                continue
            names[node.name] = node.name
            nodes += _layer(layer, names[node.args[0].name], node.name, weights)
        elif node.op == "output":
            last = names[node.args[0].name] if hasattr(node.args[0], "name") else None
        else:
            raise NotImplementedError(
                f"{type(model).__name__} has {_name(node.target)}, which has no counterpart"
            )
    if last is None or not nodes or nodes[-1].output != last:
        raise NotImplementedError(f"{type(model).__name__} has no single output")
    final = nodes[-1]
    nodes[-1] = Node(final.operation, final.inputs, "logits", final.attributes)
    classes = next(one.shape[0] for one in reversed(weights.values()))
    return onnx_bytes("network", nodes, weights, image=shape, classes=int(classes))


def _name(target: Any) -> str:
    """What an operation is called; functions would print their address, too."""
    return getattr(target, "__name__", str(target))


def _layer(layer: nn.Module, source: str, name: str, weights: Weights) -> list[Node]:
    if isinstance(layer, Normalize):
        return _normalize(layer, source, name, weights)
    for kind, write in _WRITERS.items():
        if isinstance(layer, kind):
            operation, attributes = write(layer)
            inputs = tuple(f"{name}.{key}" for key, _ in layer.named_parameters())
            weights.update(zip(inputs, map(_values, layer.parameters()), strict=True))
            return [Node(operation, (source, *inputs), name, attributes)]
    raise NotImplementedError(f"{type(layer).__name__} has no counterpart")


def _normalize(layer: Normalize, source: str, name: str, weights: Weights) -> list[Node]:
    weights[f"{name}.mean"], weights[f"{name}.std"] = _values(layer.mean), _values(layer.std)
    middle = f"{name}.centered"
    return [Node("Sub", (source, f"{name}.mean"), middle), Node("Div", (middle, f"{name}.std"), name)]


def _conv(layer: Any) -> tuple[str, dict[str, Any]]:
    return "Conv", {
        "kernel_shape": layer.kernel_size,
        "strides": layer.stride,
        "pads": (*layer.padding, *layer.padding),
        "group": layer.groups,
    }


def _pool(layer: Any) -> tuple[str, dict[str, Any]]:
    side = (layer.kernel_size,) * 2 if isinstance(layer.kernel_size, int) else layer.kernel_size
    step = (layer.stride,) * 2 if isinstance(layer.stride, int) else layer.stride
    return "MaxPool", {"kernel_shape": side, "strides": step}


_WRITERS: dict[type[nn.Module], Callable[[Any], tuple[str, dict[str, Any]]]] = {
    nn.Conv2d: _conv,
    nn.MaxPool2d: _pool,
    nn.ReLU: lambda _: ("Relu", {}),
    nn.Flatten: lambda _: ("Flatten", {}),
    nn.Linear: lambda _: ("Gemm", {"transB": 1}),
}


def _values(tensor: Any) -> NDArray[np.float32]:
    """A tensor as an array of its own."""
    found: NDArray[np.float32] = tensor.detach().cpu().contiguous().numpy().astype(np.float32)
    return found

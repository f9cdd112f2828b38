"""Tiny networks, made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest


def onnx_linear(path: Path, *, shape: list[Any], classes: int = 4, seed: int = 0, **how: Any) -> Path:
    """An ONNX file: the mean over pixels, times a matrix."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    last = how.get("layout") == "NHWC"
    kind = how.get("kind", TensorProto.FLOAT)
    channels = shape[3] if last else shape[1]
    matrix = np.random.default_rng(seed).normal(size=(channels, classes)).astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["image"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["float", "axes"], ["pooled"], keepdims=0),
        helper.make_node("MatMul", ["pooled", "matrix"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("image", kind, shape)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [shape[0], classes])],
        [
            numpy_helper.from_array(matrix, "matrix"),
            numpy_helper.from_array(np.array([1, 2] if last else [2, 3], np.int64), "axes"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    if (location := how.get("external")) is not None:
        onnx.external_data_helper.convert_model_to_external_data(
            model, all_tensors_to_one_file=True, location=location, size_threshold=60
        )
    onnx.save(model, str(path))
    return path


def tiny_net(classes: int = 5, channels: int = 3, seed: int = 0) -> Any:
    """A small convolutional network of torch with batch normalization and dropout."""
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(channels, 6, 3, stride=2),
        torch.nn.BatchNorm2d(6),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(24, classes),
    )
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return net

"""Tiny networks."""

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


def onnx_convolution(path: Path, classes: int = 4, seed: int = 0) -> Path:
    """An ONNX file with a convolution and a matrix, which quantization changes."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(seed)
    weights: dict[str, Any] = {
        "filters": rng.normal(size=(6, 3, 3, 3)).astype(np.float32),
        "matrix": rng.normal(size=(6, classes)).astype(np.float32),
        "axes": np.array([2, 3], np.int64),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["image", "filters"], ["features"], name="conv"),
            helper.make_node("Relu", ["features"], ["positive"], name="relu"),
            helper.make_node("ReduceMean", ["positive", "axes"], ["pooled"], name="pool", keepdims=0),
            helper.make_node("MatMul", ["pooled", "matrix"], ["logits"], name="head"),
        ],
        "convolution",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 32, 32])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", classes])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))
    return path


def litert_linear(path: Path, *, kind: str = "float32", batch: int = 1, classes: int = 4) -> tuple[Path, Any]:
    """A LiteRT file: the mean over 32×32 pixels in [0, 1], times the matrix that is returned.

    With `kind` uint8 or int8, all of it is quantized to that type.
    """
    flatbuffers = pytest.importorskip("flatbuffers")
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    matrix = np.random.default_rng(0).normal(size=(3, classes)).astype(np.float32)
    low = {"float32": 0, "uint8": 0, "int8": -128}[kind]
    steps = {"image": (1 / 255, low), "pooled": (1 / 255, low), "logits": (8 / 255, low + 128)}
    steps["matrix"] = (float(abs(matrix).max()) / 127, low + 128)

    def tensor(name: str, shape: list[int], buffer: int = 0, type_: str = kind) -> Any:
        one = schema.TensorT()
        one.name, one.shape, one.buffer = name.encode(), shape, buffer
        one.type = getattr(schema.TensorType, type_.upper())
        if type_ == kind != "float32":
            one.quantization = schema.QuantizationParametersT()
            scale, zero = steps[name]
            one.quantization.scale, one.quantization.zeroPoint = [scale], [zero]
        return one

    def buffer(values: Any = None) -> Any:
        one = schema.BufferT()
        if values is not None:
            one.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        return one

    def operator(code: int, inputs: list[int], output: int, options: Any, type_: int) -> Any:
        one = schema.OperatorT()
        one.opcodeIndex, one.inputs, one.outputs = code, inputs, [output]
        one.builtinOptions, one.builtinOptionsType = options, type_
        return one

    stored = matrix.T
    if kind != "float32":
        scale, zero = steps["matrix"]
        stored = (np.rint(stored / scale) + zero).astype(kind)
    graph = schema.SubGraphT()
    graph.tensors = [
        tensor("image", [batch, 32, 32, 3]),
        tensor("axes", [2], 1, "int32"),
        tensor("pooled", [batch, 3]),
        tensor("matrix", [classes, 3], 2),
        tensor("logits", [batch, classes]),
    ]
    graph.inputs, graph.outputs = [0], [4]
    options = schema.BuiltinOptions
    graph.operators = [
        operator(0, [0, 1], 2, schema.ReducerOptionsT(), options.ReducerOptions),
        operator(1, [2, 3, -1], 4, schema.FullyConnectedOptionsT(), options.FullyConnectedOptions),
    ]
    model = schema.ModelT()
    model.version, model.subgraphs = 3, [graph]
    model.buffers = [buffer(), buffer(np.array([1, 2], np.int32)), buffer(stored)]
    model.operatorCodes = []
    for code, version in ((schema.BuiltinOperator.MEAN, 2), (schema.BuiltinOperator.FULLY_CONNECTED, 4)):
        one = schema.OperatorCodeT()
        one.builtinCode = one.deprecatedBuiltinCode = code
        one.version = version
        model.operatorCodes.append(one)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path, matrix

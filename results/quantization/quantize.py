"""Write float32, float16, dynamic int8 and static int8 versions of ONNX classifiers.

    python results/quantization/quantize.py models/resnet50_224.onnx --data IMAGENET -o versions

Needs the packages onnx and onnxruntime. For NAME.onnx, the files are NAME-float32.onnx, NAME-float16.onnx,
NAME-dynamic.onnx and NAME-static.onnx.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers.float16 import convert_float_to_float16

from beaufort.data import load_dataset, prepare
from beaufort.suites import get_suite

SUITE = Path(__file__).parent / "suite.yaml"


class Photos(CalibrationDataReader):
    """The last photos of a dataset in the order of which `beaufort run --limit` takes the first."""

    def __init__(self, data: str, count: int) -> None:
        dataset = load_dataset(data).balanced(0)
        steps = get_suite(str(SUITE)).prepare
        self.photos = [
            prepare(dataset[place].image, steps) for place in range(len(dataset) - count, len(dataset))
        ]
        self.next = iter(self.photos)

    def get_next(self) -> dict[str, Any] | None:
        """Return the next photo as input of the model; None at the end."""
        photo = next(self.next, None)
        return None if photo is None else {"image": photo.transpose(2, 0, 1)[None] / np.float32(255)}


def write_float32(source: Path, target: Path) -> None:
    """Write the model with constants folded, so that all weights are float32 initializers."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def write_float16(source: Path, target: Path) -> None:
    """Write a float32 model with float16 weights and arithmetic; input and output stay float32."""
    onnx.save(convert_float_to_float16(onnx.load(str(source)), keep_io_types=True), str(target))


def write_dynamic(source: Path, target: Path) -> None:
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


def write_static(source: Path, target: Path, photos: Photos) -> None:
    """Write a float32 model with 8-bit weights, a scale per channel, and fixed scales of activations.

    The scales of activations come from the smallest and largest values on the photos. Weights use all 8 bits,
    which a processor without VNNI instructions computes less exactly.
    """
    ready = target.with_suffix(".prepared.onnx")
    quant_pre_process(str(source), str(ready))
    quantize_static(
        str(ready),
        str(target),
        photos,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    ready.unlink()


def main() -> None:
    """Write all versions of the models on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, help="ONNX files.")
    parser.add_argument("--data", required=True, help="Dataset with photos to calibrate static int8.")
    parser.add_argument("--photos", type=int, default=100, help="Number of these photos.")
    parser.add_argument("-o", "--output", type=Path, default=Path("versions"), help="Directory to write.")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    for source in chosen.models:
        float32, float16, dynamic, static = (
            chosen.output / f"{source.stem}-{kind}.onnx"
            for kind in ("float32", "float16", "dynamic", "static")
        )
        write_float32(source, float32)
        write_float16(float32, float16)
        write_dynamic(float32, dynamic)
        write_static(float32, static, Photos(chosen.data, chosen.photos))
        for path in (float32, float16, dynamic, static):
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

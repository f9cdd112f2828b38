"""OpenVINO models (`.xml` with `.bin`), and ONNX files run by OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.optional import require
from beaufort._core.validation import validate_choice, validate_file, validate_integer
from beaufort.models._declared import declared_input, file_network
from beaufort.models.network import Network
from beaufort.models.onnx_format import onnx_files
from beaufort.models.options import DeviceOptions
from beaufort.models.spec import ModelError, ModelFileError, digest_of_files

_TYPES = {"f32": "float32", "f16": "float16", "u8": "uint8"}
_PRECISIONS = ("f32", "f16", "bf16")


def load(
    path: str, *, output: str | None = None, precision: str = "f32", **options: Unpack[DeviceOptions]
) -> Network:
    """Return the network in an OpenVINO model or an ONNX file.

    Input size, layout, dtype and a fixed batch size are read from the file, and images are resized, as for
    ONNX files.

    Args:
        path: the `.xml` file, beside its weights (`.bin`), or an `.onnx` file.
        output: name of the output with the logits; the first by default.
        precision: of the arithmetic of unquantized layers: `f32`, `f16` or `bf16`. OpenVINO itself would
            choose by the processor. Others than f32 are part of the digest.
        **options: see `DeviceOptions`; `device` may be any device of OpenVINO, such as `gpu` or `npu`.
    """
    openvino = require("openvino", "openvino", what="OpenVINO models")
    file = validate_file("OpenVINO model", path, ModelFileError)
    validate_choice("precision", precision, _PRECISIONS)
    core = openvino.Core()
    device = _device(core.available_devices, str(options.get("device", "auto")))
    try:
        weights = digest_of_files(_files(file))
        model = core.read_model(str(file))
        settings = {"INFERENCE_PRECISION_HINT": precision}
        if (threads := options.get("threads")) is not None:
            settings["INFERENCE_NUM_THREADS"] = str(validate_integer("threads", threads, 1, 4096))
        compiled = core.compile_model(model, device, settings)
    except RuntimeError as error:
        raise ModelFileError(f"OpenVINO cannot open {file}: {_reason(error)}") from None
    inputs = compiled.inputs
    kinds = [one.element_type.to_string() for one in inputs]
    if len(inputs) != 1 or kinds[0] not in _TYPES:
        raise ModelError(f"{file} must have one input of type {' or '.join(_TYPES)}, got {kinds}")
    shape = [side.get_length() if side.is_static else None for side in inputs[0].partial_shape]
    exit_ = compiled.outputs[0]
    if output is not None:
        outputs = {name: one for one in compiled.outputs for name in one.names}
        validate_choice(f"output of {file}", output, outputs)
        exit_ = outputs[output]

    def run(batch: NDArray[Any]) -> Any:
        try:
            return compiled([batch])[exit_]
        except RuntimeError as error:
            raise ModelError(f"OpenVINO cannot run {file}: {_reason(error)}") from None

    details = {"output": output, "precision": None if precision == "f32" else precision}
    return file_network(
        f"openvino:{path}",
        file,
        declared_input(file, shape, _TYPES[kinds[0]]),
        run,
        options,
        weights=weights,
        device=device.lower(),
        details={name: value for name, value in details.items() if value is not None},
    )


def _files(file: Path) -> list[Path]:
    """Return the file and the files of its weights."""
    if file.suffix == ".onnx":
        return onnx_files(file)
    weights = file.with_suffix(".bin")
    return [file, weights] if weights.is_file() else [file]


def _device(available: list[str], device: str) -> str:
    if device == "auto":
        return next((name for name in available if name.startswith("GPU")), "CPU")
    name = device.upper()
    if name not in available:
        raise OptionError(
            f"device {device!r:.60} is not available to OpenVINO; available: {', '.join(available).lower()}"
        )
    return name


def _reason(error: RuntimeError) -> str:
    """Return the last line that says something; the first ones name files of OpenVINO's source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__

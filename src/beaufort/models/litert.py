"""LiteRT models (`.tflite`), once TensorFlow Lite."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.optional import require
from beaufort._core.validation import validate_choice, validate_file, validate_integer
from beaufort.models._declared import declared_input, file_network
from beaufort.models.network import Network
from beaufort.models.options import DeviceOptions
from beaufort.models.spec import ModelError, ModelFileError, digest_of_files

_VALUES = ("range", "mean", "std", "dtype")
"""Options that change the values of images."""


def load(path: str, *, output: str | None = None, **options: Unpack[DeviceOptions]) -> Network:
    """Return the network in a LiteRT file.

    Input size, layout and batch size are read from the file, which runs with one batch size. The default for
    float inputs is RGB in [0, 1]. A quantized input gets the pixels themselves, 0…255 as all its 256 values.
    With `range`, `mean` or `std`, it gets these values, quantized with the scale and zero point of the file.
    Quantized outputs are converted to floats likewise.

    Args:
        path: the `.tflite` file.
        output: name of the output with the logits; the first by default.
        **options: see `DeviceOptions`; it runs on the CPU.
    """
    require("ai_edge_litert", "litert", what="LiteRT models")
    litert = import_module("ai_edge_litert.interpreter")
    file = validate_file("LiteRT model", path, ModelFileError)
    if (device := options.get("device", "auto")) not in ("auto", "cpu"):
        raise OptionError(f"device must be auto or cpu for LiteRT models, got {device!r:.60}")
    threads = options.get("threads")
    if threads is not None:
        threads = validate_integer("threads", threads, 1, 4096)
    try:
        interpreter = litert.Interpreter(model_path=str(file), num_threads=threads)
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise ModelFileError(f"LiteRT cannot open {file}: {error!s:.300}") from None
    inputs = interpreter.get_input_details()
    outputs = {one["name"]: one for one in interpreter.get_output_details()}
    kinds = [np.dtype(one["dtype"]).name for one in inputs]
    if len(inputs) != 1 or kinds[0] not in ("float32", "uint8", "int8"):
        raise ModelError(f"{file} must have one input of type float32, uint8 or int8, got {kinds}")
    if output is not None:
        validate_choice(f"output of {file}", output, outputs)
    exit_ = outputs[output or next(iter(outputs))]
    entry = inputs[0]
    quantized = kinds[0] != "float32"
    as_pixels = quantized and options.keys().isdisjoint(_VALUES)
    if quantized and not as_pixels and not entry["quantization"][0]:
        raise OptionError(f"the input of {file} has no scale, so {', '.join(_VALUES)} cannot be used")

    def run(batch: NDArray[Any]) -> Any:
        if as_pixels and kinds[0] == "int8":
            batch = (batch.astype(np.int16) - 128).astype(np.int8)
        elif quantized and not as_pixels:
            batch = _quantized(batch, entry)
        try:
            interpreter.set_tensor(entry["index"], batch)
            interpreter.invoke()
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"LiteRT cannot run {file}: {error!s:.300}") from None
        logits = interpreter.get_tensor(exit_["index"])
        scale, zero = exit_["quantization"]
        return (logits.astype(np.float32) - zero) * np.float32(scale) if scale else logits

    return file_network(
        f"litert:{path}",
        file,
        declared_input(file, entry["shape"].tolist(), "uint8" if as_pixels else "float32"),
        run,
        options,
        weights=digest_of_files([file]),
        device="cpu",
        details={"output": output} if output else None,
    )


def _quantized(values: NDArray[np.float32], entry: dict[str, Any]) -> NDArray[Any]:
    """Return the nearest quantized values of an input."""
    scale, zero = entry["quantization"]
    limits = np.iinfo(entry["dtype"])
    steps = np.rint(values / np.float32(scale)) + zero
    return np.asarray(np.clip(steps, limits.min, limits.max).astype(entry["dtype"]))

"""ONNX files, run by ONNX Runtime."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import MissingExtraError, OptionError
from beaufort._core.optional import installed
from beaufort._core.validation import validate_choice, validate_file, validate_integer
from beaufort.models.network import Network
from beaufort.models.onnx_format import RESIZE, onnx_files
from beaufort.models.options import DeviceOptions, make_spec
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError, ModelFileError, digest_of_files

_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}
_NAME_KEYS = ("names", "class_names", "classes", "labels")
"""Metadata keys under which exporters write class names."""


def load(path: str, *, output: str | None = None, **options: Unpack[DeviceOptions]) -> Network:
    """Return the network in an ONNX file.

    Input size, layout, dtype and a fixed batch size are read from the file. The default is RGB in [0, 1]
    without normalization. Images of another size are resized to the input: by their short side with a center
    crop if the input is square, else stretched. The metadata of files from `beaufort train` say that images
    are stretched.

    Args:
        path: the file; weights in other files must be in its folder.
        output: name of the output with the logits; the first by default.
        **options: see `DeviceOptions`; classes are read from the file if not given.
    """
    file = validate_file("ONNX model", path, ModelFileError)
    weights = digest_of_files(onnx_files(file))
    session, device = _session(file, str(options.get("device", "auto")), options.get("threads"))
    metadata = session.get_modelmeta().custom_metadata_map
    entry, fixed_batch, base = _input(session, metadata, file)
    outputs = {node.name: node for node in session.get_outputs()}
    if output is not None:
        validate_choice(f"output of {file}", output, outputs)
    exit_ = outputs[output or next(iter(outputs))]
    spec = make_spec(
        options,
        default_name=file.stem,
        source=f"onnx:{path}",
        base=base,
        weights=weights,
        details={"output": output} if output else None,
    )
    changed = spec.preprocessing
    if base.size not in (None, changed.size) and changed.layout == base.layout:
        raise OptionError(f"input_size must be {base.size}, which is fixed in {file}, got {changed.size}")
    if spec.classes is None and len(exit_.shape) >= 2 and isinstance(exit_.shape[1], int):
        spec = replace(spec, classes=exit_.shape[1])
    if spec.class_names is None:
        spec = replace(spec, class_names=names_in(metadata, spec.classes))

    def forward(batch: NDArray[Any]) -> NDArray[Any]:
        count = len(batch)
        if fixed_batch and count < fixed_batch:
            padding = np.zeros((fixed_batch - count, *batch.shape[1:]), batch.dtype)
            batch = np.concatenate([batch, padding])
        try:
            logits = np.asarray(session.run([exit_.name], {entry.name: batch})[0])[:count]
        except Exception as error:  # ONNX Runtime's errors have no other common base
            raise ModelError(f"ONNX Runtime cannot run {file}: {_first_line(error)}") from None
        return logits.reshape(count, -1) if set(logits.shape[2:]) == {1} else logits

    limits = [limit for limit in (fixed_batch, options.get("max_batch")) if limit is not None]
    return Network(spec, forward, device, min(limits, default=None)).with_class_count()


def _session(file: Path, device: str, threads: int | None) -> tuple[Any, str]:
    if not installed("onnxruntime"):
        raise MissingExtraError("ONNX models need onnxruntime: pip install onnxruntime")
    onnxruntime = import_module("onnxruntime")
    providers, used = _providers(onnxruntime.get_available_providers(), device)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.use_deterministic_compute = True
    if threads is not None:
        options.intra_op_num_threads = options.inter_op_num_threads = validate_integer(
            "threads", threads, 1, 4096
        )
    fallback = int(len(providers) > 1)  # otherwise it prints the error and tries the same again
    try:
        session = onnxruntime.InferenceSession(
            str(file), options, providers=providers, enable_fallback=fallback
        )
    except Exception as error:  # ONNX Runtime's errors have no other common base
        raise ModelFileError(f"ONNX Runtime cannot open {file}: {_first_line(error)}") from None
    if used != "cpu" and session.get_providers()[0] == "CPUExecutionProvider":
        if device != "auto":
            raise ModelError(f"ONNX Runtime cannot use the device {device!r}; use device='cpu'")
        used = "cpu"
    return session, used


def _providers(available: list[str], device: str) -> tuple[list[Any], str]:
    has_cuda = "CUDAExecutionProvider" in available
    if device == "cpu" or (device == "auto" and not has_cuda):
        return ["CPUExecutionProvider"], "cpu"
    kind, _, index = ("cuda", "", "") if device == "auto" else str(device).partition(":")
    if kind != "cuda" or not (index or "0").isdecimal():
        raise OptionError(f"device must be auto, cpu, cuda or cuda:0 for ONNX files, got {device!r:.60}")
    if not has_cuda:
        raise MissingExtraError(
            f"device {device!r} needs an ONNX Runtime with CUDA: pip install onnxruntime-gpu"
        )
    settings = {"device_id": index or "0", "use_tf32": "0"}
    return [("CUDAExecutionProvider", settings), "CPUExecutionProvider"], f"cuda:{index or 0}"


def _input(session: Any, metadata: Mapping[str, str], file: Path) -> tuple[Any, int | None, Preprocessing]:
    """Return the input node, its fixed batch size and the preprocessing."""
    inputs = session.get_inputs()
    shape: Any = inputs[0].shape if len(inputs) == 1 and inputs[0].type in _TYPES else ()
    last = len(shape) == 4 and shape[3] in (1, 3) and shape[1] not in (1, 3)
    sides, channels = (shape[1:3], shape[3]) if last else (shape[2:4], shape[1] if shape else 0)
    if len(shape) != 4 or (isinstance(channels, int) and channels not in (1, 3)):
        found = ", ".join(f"{node.name} {node.type} {node.shape}" for node in inputs) or "none"
        raise ModelError(
            f"{file} must have one input with four axes, 1 or 3 channels and type {' or '.join(_TYPES)}, got "
            f"{found}"
        )
    dtype = _TYPES[inputs[0].type]
    size = tuple(sides) if all(isinstance(side, int) and side > 0 for side in sides) else None
    resize = _parsed(metadata[RESIZE]) if RESIZE in metadata else None
    resize = tuple(resize) if isinstance(resize, list) else resize
    if resize not in (None, size):
        raise ModelError(
            f"{RESIZE} in the metadata of {file} must be its input size {size}, got {resize!r:.60}"
        )
    preprocessing = Preprocessing(
        size=size,
        resize=None if size is None else resize or (size[0] if size[0] == size[1] else size),
        channels=channels if isinstance(channels, int) else 3,
        value_range="0..255" if dtype == "uint8" else "0..1",
        layout="NHWC" if last else "NCHW",
        dtype=dtype,
    )
    return inputs[0], shape[0] if isinstance(shape[0], int) and shape[0] > 0 else None, preprocessing


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def names_in(metadata: Mapping[str, str], count: int | None) -> tuple[str, ...] | None:
    """Return the class names in metadata; None if there is no list of `count` names.

    A list, a dictionary by number (as JSON or Python), or names separated by commas or lines.

    >>> names_in({"names": "{0: 'cat', 1: 'dog'}"}, 2)
    ('cat', 'dog')
    """
    for key in _NAME_KEYS:
        names = _listed(metadata[key]) if key in metadata else ()
        if names and len(names) == count:
            return names
    return None


def _listed(text: str) -> tuple[str, ...]:
    names = _parsed(text)
    if isinstance(names, dict):
        try:
            numbered = {int(key): name for key, name in names.items()}
        except (TypeError, ValueError):
            return ()
        names = [numbered[index] for index in sorted(numbered)] if min(numbered, default=1) == 0 else []
    if isinstance(names, str):
        names = [name.strip() for name in names.split("\n" if "\n" in names else ",")]
    valid = isinstance(names, list | tuple) and all(isinstance(name, str) and name for name in names)
    return tuple(names) if valid else ()


def _parsed(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text

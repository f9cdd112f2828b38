"""ONNX files, run by ONNX Runtime."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

from numpy.typing import NDArray

from beaufort._core.errors import MissingExtraError, OptionError
from beaufort._core.optional import installed
from beaufort._core.validation import validate_choice, validate_file, validate_integer
from beaufort.models._declared import DeclaredInput, declared_input, file_network
from beaufort.models.network import Network
from beaufort.models.onnx_format import RESIZE, onnx_files
from beaufort.models.options import DeviceOptions
from beaufort.models.spec import ModelError, ModelFileError, ModelSpec, digest_of_files

_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}
_CPU = "CPUExecutionProvider"
_NAME_KEYS = ("names", "class_names", "classes", "labels")
"""Metadata keys under which exporters write class names."""


def load(
    path: str, *, output: str | None = None, provider: str | None = None, **options: Unpack[DeviceOptions]
) -> Network:
    """Return the network in an ONNX file.

    Input size, layout, dtype and a fixed batch size are read from the file. The default is RGB in [0, 1]
    without normalization. Images of another size are resized to the input: by their short side with a center
    crop if the input is square, else stretched. The metadata of files from `beaufort train` say that images
    are stretched.

    Args:
        path: the file; weights in other files must be in its folder.
        output: name of the output with the logits; the first by default.
        provider: execution provider of ONNX Runtime by name, such as `TensorRT`, with options as in
            `TensorRT,trt_fp16_enable=1`; part of the digest. By default, `device` selects CPU or CUDA.
        **options: see `DeviceOptions`; classes are read from the file if not given.
    """
    file = validate_file("ONNX model", path, ModelFileError)
    weights = digest_of_files(onnx_files(file))
    device = str(options.get("device", "auto"))
    if provider is not None and device != "auto":
        raise OptionError("provider and device cannot be used together; provider options select a device")
    session, used = _session(file, device, provider, options.get("threads"))
    metadata = session.get_modelmeta().custom_metadata_map
    entry, declared = _input(session, metadata, file)
    outputs = {node.name: node for node in session.get_outputs()}
    if output is not None:
        validate_choice(f"output of {file}", output, outputs)
    exit_ = outputs[output or next(iter(outputs))]

    def run(batch: NDArray[Any]) -> Any:
        try:
            return session.run([exit_.name], {entry.name: batch})[0]
        except Exception as error:  # ONNX Runtime's errors have no other common base
            raise ModelError(f"ONNX Runtime cannot run {file}: {_first_line(error)}") from None

    def complete(spec: ModelSpec) -> ModelSpec:
        if spec.classes is None and len(exit_.shape) >= 2 and isinstance(exit_.shape[1], int):
            spec = replace(spec, classes=exit_.shape[1])
        if spec.class_names is None:
            spec = replace(spec, class_names=names_in(metadata, spec.classes))
        return spec

    details = {"output": output, "provider": provider}
    return file_network(
        f"onnx:{path}",
        file,
        declared,
        run,
        options,
        weights=weights,
        device=used,
        details={name: value for name, value in details.items() if value is not None},
        complete=complete,
    )


def _session(file: Path, device: str, provider: str | None, threads: int | None) -> tuple[Any, str]:
    if not installed("onnxruntime"):
        raise MissingExtraError("ONNX models need onnxruntime: pip install onnxruntime")
    onnxruntime = import_module("onnxruntime")
    available = onnxruntime.get_available_providers()
    if provider is not None:
        providers, used = _named_provider(available, provider)
    else:
        providers, used = _providers(available, device)
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
    if used != "cpu" and session.get_providers()[0] == _CPU:
        if provider is not None:
            raise ModelError(f"ONNX Runtime cannot use the execution provider {provider!r} for {file}")
        if device != "auto":
            raise ModelError(f"ONNX Runtime cannot use the device {device!r}; use device='cpu'")
        used = "cpu"
    return session, used


def _named_provider(available: Sequence[str], text: str) -> tuple[list[Any], str]:
    """Return an execution provider with its options, before the CPU, and its short name."""
    name, *settings = text.split(",")
    names = {one.removesuffix("ExecutionProvider").lower(): one for one in available}
    short = name.strip().removesuffix("ExecutionProvider").lower()
    if short not in names:
        listed = ", ".join(one.removesuffix("ExecutionProvider") for one in available)
        raise OptionError(f"execution provider {name!r:.60} is not installed; this ONNX Runtime has {listed}")
    pairs = [setting.partition("=") for setting in settings]
    if any(not key.strip() or not equals for key, equals, _ in pairs):
        raise OptionError(f"provider must be written as NAME,OPTION=VALUE,…, got {text!r:.80}")
    chosen = (names[short], {key.strip(): value.strip() for key, _, value in pairs})
    return ([chosen] if names[short] == _CPU else [chosen, _CPU]), short


def _providers(available: Sequence[str], device: str) -> tuple[list[Any], str]:
    has_cuda = "CUDAExecutionProvider" in available
    if device == "cpu" or (device == "auto" and not has_cuda):
        return [_CPU], "cpu"
    kind, _, index = ("cuda", "", "") if device == "auto" else str(device).partition(":")
    if kind != "cuda" or not (index or "0").isdecimal():
        raise OptionError(
            f"device must be auto, cpu, cuda or cuda:0 for ONNX files, got {device!r:.60}; provider= names "
            "other execution providers"
        )
    if not has_cuda:
        raise MissingExtraError(
            f"device {device!r} needs an ONNX Runtime with CUDA: pip install onnxruntime-gpu"
        )
    settings = {"device_id": index or "0", "use_tf32": "0"}
    return [("CUDAExecutionProvider", settings), _CPU], f"cuda:{index or 0}"


def _input(session: Any, metadata: Mapping[str, str], file: Path) -> tuple[Any, DeclaredInput]:
    """Return the input node and what it declares."""
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type not in _TYPES:
        found = ", ".join(f"{node.name} {node.type} {node.shape}" for node in inputs) or "none"
        raise ModelError(f"{file} must have one input of type {' or '.join(_TYPES)}, got {found}")
    resize = _parsed(metadata[RESIZE]) if RESIZE in metadata else None
    resize = tuple(resize) if isinstance(resize, list) else resize
    preprocessing, batch = declared_input(file, inputs[0].shape, _TYPES[inputs[0].type])
    if resize not in (None, preprocessing.size):
        raise ModelError(
            f"{RESIZE} in the metadata of {file} must be its input size {preprocessing.size}, got "
            f"{resize!r:.60}"
        )
    if resize is not None:
        preprocessing = replace(preprocessing, resize=resize)
    return inputs[0], DeclaredInput(preprocessing, batch)


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

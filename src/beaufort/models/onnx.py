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
from beaufort._core.validation import validate_integer
from beaufort.models.network import Network
from beaufort.models.onnx_format import RESIZE, onnx_files
from beaufort.models.options import DeviceOptions, make_spec
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError, ModelFileError, digest_of_files

_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}
_NAME_KEYS = ("names", "class_names", "classes", "labels")
"""What exporters call the entry with the names of classes."""


def load(path: str, *, output: str | None = None, **options: Unpack[DeviceOptions]) -> Network:
    """A network in an ONNX file.

    Input size, layout, dtype and a fixed batch are read from the file. What the file does not say is
    taken to be RGB in 0..1, without normalization. Images of another size are resized to the input: by their
    short side, and the middle is cut out, if the input is square; else they are stretched. Files that
    `beaufort train` wrote say that images are stretched.

    Args:
        path: the file; weights kept in other files must be in its folder.
        output: which output has the logits; the first if not given.
        **options: see `DeviceOptions`; classes are read from the file if not given.
    """
    file = Path(path)
    if not file.is_file():
        raise ModelFileError(f"{path} is not a file; write an ONNX model as onnx:folder/model.onnx")
    weights = digest_of_files(onnx_files(file))
    session, used = _session(file, options.get("device", "auto"), options.get("threads"))
    entry, fixed_batch, base = _input(session, file)
    exit_ = _output(session, file, output)
    spec = make_spec(
        options,
        default_name=file.stem,
        source=f"onnx:{path}",
        base=base,
        weights=weights,
        details={"output": output} if output else None,
    )
    wanted = spec.preprocessing
    if base.size not in (None, wanted.size) and wanted.layout == base.layout:
        raise OptionError(
            f"input_size must be {base.size}, the only one that {file} takes, got {wanted.size}; "
            "export it with a height and width that may vary, or remove input_size"
        )
    if spec.classes is None and len(exit_.shape) >= 2 and isinstance(exit_.shape[1], int):
        spec = replace(spec, classes=exit_.shape[1])
    if spec.class_names is None:
        names = names_in(session.get_modelmeta().custom_metadata_map, spec.classes)
        spec = replace(spec, class_names=names)

    def forward(batch: NDArray[Any]) -> NDArray[Any]:
        count = len(batch)
        if fixed_batch and count < fixed_batch:
            filler = np.zeros((fixed_batch - count, *batch.shape[1:]), batch.dtype)
            batch = np.concatenate([batch, filler])
        try:
            answer = np.asarray(session.run([exit_.name], {entry.name: batch})[0])[:count]
        except Exception as error:  # ONNX Runtime's errors share no base but this
            raise ModelError(f"ONNX Runtime cannot run {file}: {_first_line(error)}") from None
        return answer.reshape(count, -1) if set(answer.shape[2:]) == {1} else answer

    limits = [limit for limit in (fixed_batch, options.get("max_batch")) if limit is not None]
    return Network(spec, forward, used, min(limits, default=None)).with_class_count()


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
    falls_back = int(len(providers) > 1)  # otherwise it would print what is wrong, and try the same again
    try:
        session = onnxruntime.InferenceSession(
            str(file), options, providers=providers, enable_fallback=falls_back
        )
    except Exception as error:  # ONNX Runtime's errors share no base but this
        raise ModelFileError(f"ONNX Runtime cannot open {file}: {_first_line(error)}") from None
    if used != "cpu" and session.get_providers()[0] == "CPUExecutionProvider":
        if device != "auto":
            raise ModelError(f"ONNX Runtime cannot use the device {device!r}; use device='cpu'")
        used = "cpu"
    return session, used


def _providers(available: list[str], device: str) -> tuple[list[Any], str]:
    if not isinstance(device, str):
        raise OptionError(f"device must be auto, cpu, cuda or cuda:0, got {device!r:.60}")
    has_cuda = "CUDAExecutionProvider" in available
    if device == "cpu" or (device == "auto" and not has_cuda):
        return ["CPUExecutionProvider"], "cpu"
    kind, _, index = ("cuda", "", "") if device == "auto" else device.partition(":")
    if kind != "cuda" or not (index or "0").isdecimal():
        raise OptionError(f"device must be auto, cpu, cuda or cuda:0 for ONNX files, got {device!r}")
    if not has_cuda:
        raise MissingExtraError(
            f"device {device!r} needs an ONNX Runtime with CUDA: pip install onnxruntime-gpu"
        )
    settings = {"device_id": index or "0", "use_tf32": "0"}
    return [("CUDAExecutionProvider", settings), "CPUExecutionProvider"], f"cuda:{index or 0}"


def _input(session: Any, file: Path) -> tuple[Any, int | None, Preprocessing]:
    inputs = session.get_inputs()
    if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].type not in _TYPES:
        told = ", ".join(f"{entry.name} {entry.type} {entry.shape}" for entry in inputs) or "none"
        raise ModelError(
            f"{file} must have one input of four axes, of type {' or '.join(_TYPES)}, got {told}"
        )
    shape, dtype = inputs[0].shape, _TYPES[inputs[0].type]
    last = shape[3] in (1, 3) and shape[1] not in (1, 3)
    sides, channels = (shape[1:3], shape[3]) if last else (shape[2:4], shape[1])
    size = tuple(sides) if all(isinstance(side, int) and side > 0 for side in sides) else None
    if isinstance(channels, int) and channels not in (1, 3):
        raise ModelError(f"{file} must take 1 or 3 channels, got {channels} (shape {shape})")
    said = _resize_in(session.get_modelmeta().custom_metadata_map)
    if said not in (None, size):
        raise ModelError(
            f"the metadata of {file} must say that images are resized to its input size, {size}, got "
            f"{said!r:.60}"
        )
    preprocessing = Preprocessing(
        size=size,
        resize=None if size is None else said or (size[0] if size[0] == size[1] else size),
        channels=channels if isinstance(channels, int) else 3,
        value_range="0..255" if dtype == "uint8" else "0..1",
        layout="NHWC" if last else "NCHW",
        dtype=dtype,
    )
    return inputs[0], shape[0] if isinstance(shape[0], int) and shape[0] > 0 else None, preprocessing


def _output(session: Any, file: Path, wanted: str | None) -> Any:
    outputs = {output.name: output for output in session.get_outputs()}
    if wanted is not None and wanted not in outputs:
        raise OptionError(f"output must be one of {', '.join(outputs)} for {file}, got {wanted!r}")
    return outputs[wanted] if wanted is not None else next(iter(outputs.values()))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def names_in(metadata: Mapping[str, str], count: int | None) -> tuple[str, ...] | None:
    """The name of each output, in order; None if the metadata have no list of as many names.

    A list, a dictionary by number (in JSON, or as Python prints it), or names separated by commas or lines.

    >>> names_in({"names": "{0: 'cat', 1: 'dog'}"}, 2)
    ('cat', 'dog')
    """
    for key in _NAME_KEYS:
        names = _listed(metadata[key]) if key in metadata else ()
        if names and len(names) == count:
            return names
    return None


def _resize_in(metadata: Mapping[str, str]) -> Any:
    """What the entry `RESIZE` says, unchecked; None if there is none."""
    found = _parsed(metadata[RESIZE]) if RESIZE in metadata else None
    return tuple(found) if isinstance(found, list) else found


def _listed(text: str) -> tuple[str, ...]:
    found = _parsed(text)
    if isinstance(found, dict):
        try:
            numbered = {int(key): name for key, name in found.items()}
        except (TypeError, ValueError):
            return ()
        found = [numbered[place] for place in sorted(numbered)] if min(numbered, default=1) == 0 else []
    if isinstance(found, str):
        found = [name.strip() for name in found.split("\n" if "\n" in found else ",")]
    good = isinstance(found, list | tuple) and all(isinstance(name, str) and name for name in found)
    return tuple(found) if good else ()


def _parsed(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text

"""Torch modules: in memory, as a state dict and an architecture, or as an exported program."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.optional import require
from beaufort._core.validation import validate_file, validate_integer
from beaufort.models._exported import is_compiled, open_compiled, open_exported
from beaufort.models.network import Network
from beaufort.models.options import TorchOptions, make_spec
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Logits, ModelError, ModelFileError, digest_of_files, digest_of_tensors

_WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "state_dict_ema")
"""Keys under which training programs store the state dict in a checkpoint."""


def load(
    path: str,
    *,
    arch: str | None = None,
    trusted: bool = False,
    batch: int | None = None,
    **options: Unpack[TorchOptions],
) -> Network:
    """Return the network in a file of torch.

    An exported program (`.pt2`) contains its architecture and input size; a state dict (`.pt`, `.pth`,
    `.th`, `.safetensors`, …) requires `arch`. A package of AOTInductor (`.pt2`) is compiled code, which does
    not check its input: it requires `trusted` and `input_size`. The default input is RGB in [0, 1].

    Args:
        path: the file. Pickled modules are rejected: a pickle can run any program.
        arch: `python:package.module:factory`, which returns the module for the state dict.
        trusted: whether a package of AOTInductor may be run, as any program of its author.
        batch: the only batch size that the package was compiled for; None if any.
        **options: see `TorchOptions`.
    """
    torch = require("torch", "torch", what="torch models")
    file = validate_file("torch model", path, ModelFileError)
    if file.suffix == ".pt2":
        if arch is not None:
            raise OptionError(f"arch cannot be used with {path}, which is an exported program")
        if is_compiled(file):
            return _compiled(path, file, trusted, batch, options)
        program = open_exported(file)
        limits = [limit for limit in (program.batch, options.get("max_batch")) if limit is not None]
        options["max_batch"] = min(limits, default=None)
        return from_module(
            program.module,
            default_name=file.stem,
            source=f"torch:{path}",
            weights=digest_of_files([file]),
            base=program.preprocessing,
            fixed_batch=program.batch,
            exported=True,
            **options,
        )
    if arch is None or not arch.startswith("python:"):
        raise OptionError(
            f"{path} requires arch=python:package.module:factory, where factory() returns the module of this "
            f"state dict, got {arch!r}; files of torch.export.save (.pt2) do not"
        )
    from beaufort.models.python import find_object

    module = find_object(arch.removeprefix("python:"))()
    if not isinstance(module, torch.nn.Module):
        raise ModelError(f"{arch} must return a torch module, got {type(module).__name__}")
    load_weights(module, file)
    details = {"architecture": arch}
    return from_module(module, default_name=file.stem, source=f"torch:{path}", details=details, **options)


def _compiled(path: str, file: Path, trusted: bool, batch: int | None, options: TorchOptions) -> Network:
    """Return the network in a package of AOTInductor."""
    torch = require("torch", "torch", what="torch models")
    if not trusted:
        raise OptionError(
            f"{path} contains compiled code, which runs as a program with your permissions; pass "
            "trusted=true if you trust its author"
        )
    if options.get("input_size") is None:
        raise OptionError(
            f"{path} requires input_size=, and batch= if it was compiled for one batch size: compiled code "
            "does not check its input"
        )
    if batch is not None:
        options["max_batch"] = min(validate_integer("batch", batch, 1), options.get("max_batch") or batch)
    program, device = open_compiled(file)
    if torch.device(choose_device(options.get("device", device))).type != device:
        raise OptionError(f"{path} was compiled for device={device}, got {options.get('device')!r}")
    options.setdefault("device", device)
    network = from_module(
        torch.nn.Identity(),
        run=program,
        default_name=file.stem,
        source=f"torch:{path}",
        weights=digest_of_files([file]),
        fixed_batch=batch,
        exported=True,
        **options,
    )
    return replace(network, differentiable=None)


def from_module(
    module: Any,
    *,
    default_name: str,
    source: str,
    run: Callable[[Any], Any] | None = None,
    base: Preprocessing | None = None,
    weights: str | None = None,
    details: dict[str, Any] | None = None,
    fixed_batch: int | None = None,
    exported: bool = False,
    shared: bool = False,
    **options: Unpack[TorchOptions],
) -> Network:
    """Return a network of a torch module, which is moved to the device and predicts in evaluation mode.

    Args:
        module: the module.
        default_name: its name if the options give none.
        source: description of its origin.
        run: function from a tensor of images to logits; the module itself by default.
        base: the preprocessing before the options' changes.
        weights: identity of the parameters; their sha256 by default.
        details: other values that change predictions.
        fixed_batch: the only batch size that it accepts; smaller batches are padded. So are those of a
            module of `torch.compile`, so that it is compiled once.
        exported: whether it is an exported program, which has no modes.
        shared: whether the caller keeps the module and may train it: its own mode is restored after each
            call, and changes of the weights are detected.
        **options: see `TorchOptions`; the number of classes is determined if not given.
    """
    torch = require("torch", "torch", what="torch models")
    use_threads(options.get("threads"))
    device = choose_device(options.get("device", "auto"))
    channels_last, tf32 = options.get("channels_last", False), options.get("tf32", False)
    weights = weights or digest_of_tensors(module.state_dict())
    if not exported and not shared:
        module.eval()
    module.to(device)
    if channels_last:
        module.to(memory_format=torch.channels_last)
    before = _versions(module) if shared else []
    spec = make_spec(
        options,
        default_name=default_name,
        source=source,
        base=base or Preprocessing(),
        weights=weights,
        details={
            **(details or {}),
            **({"tf32": True} if tf32 else {}),
            **({"compile": True} if options.get("compile") else {}),
        },
    )
    if options.get("compile"):
        module, run = (module, torch.compile(run)) if run is not None else (torch.compile(module), None)
    compiled = hasattr(module, "_orig_mod") or bool(options.get("compile"))
    largest = fixed_batch or 0

    def prepared(batch: Any) -> Any:
        """Pad a batch with zeros; each batch size would compile a compiled module anew."""
        nonlocal largest
        if compiled:
            largest = max(largest, len(batch))
        if (missing := largest - len(batch)) > 0:
            batch = torch.cat([batch, batch.new_zeros((missing, *batch.shape[1:]))])
        return batch.contiguous(memory_format=torch.channels_last) if channels_last else batch

    def logits(batch: Any) -> Any:
        deterministic = torch.backends.cudnn.flags(
            enabled=True, benchmark=False, deterministic=True, allow_tf32=tf32
        )
        with deterministic, _evaluation_mode(module) if shared else nullcontext():
            return logits_of((run or module)(batch))

    def differentiable(batch: Any) -> Any:
        return logits(prepared(batch))[: len(batch)]

    def predict(batch: Any) -> Any:
        padded = prepared(
            batch
        )  # outside of inference mode, whose tensors are of another kind to the compiler
        with torch.inference_mode():
            return logits(padded)[: len(batch)].detach()

    def forward(batch: NDArray[Any]) -> Logits:
        output: Logits = predict(torch.from_numpy(batch).to(device)).cpu().numpy()
        return output

    def unchanged() -> bool:
        return _versions(module) == before or digest_of_tensors(module.state_dict()) == weights

    network = Network(
        spec,
        forward,
        device,
        options.get("max_batch"),
        predict,
        channels_last,
        differentiable,
        unchanged if shared else None,
        None if exported or compiled or run is not None else module,
    )
    if spec.classes is None and compiled and run is None:
        # determine the number of classes without compiling for one image
        plain = from_module(
            module._orig_mod,
            default_name=spec.name,
            source=source,
            base=spec.preprocessing,
            shared=shared,
            device=device,
        )
        return replace(network, spec=replace(spec, classes=plain.spec.classes))
    return network.with_class_count()


@contextmanager
def _evaluation_mode(module: Any) -> Iterator[None]:
    """Set evaluation mode, and restore the mode of each submodule afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    if not any(training for _, training in modes):
        yield
        return
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:  # a module precedes its submodules
            if part.training != training:
                part.train(training)


def _versions(module: Any) -> list[tuple[int, int]]:
    """Return the address of each tensor and how often torch has written to it."""
    tensors = module.state_dict().values()
    return [(tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version) for tensor in tensors]


def choose_device(device: str) -> str:
    """Return a device that exists; `auto` is the first GPU, or the CPU."""
    torch = require("torch", "torch", what="torch models")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise OptionError(f"device must be auto, cpu, cuda, cuda:0 or mps, got {device!r}") from None
    if (kind == "cuda" and not torch.cuda.is_available()) or (
        kind == "mps" and not torch.backends.mps.is_available()
    ):
        raise OptionError(f"device {device!r} is not available; use device='cpu'")
    return device


def use_threads(threads: int | None) -> None:
    """Set the number of threads of torch in the whole process; None leaves it unchanged."""
    if threads is not None:
        torch = require("torch", "torch", what="torch models")
        torch.set_num_threads(validate_integer("threads", threads, 1, 4096))


def load_weights(module: Any, file: Path) -> None:
    """Load the state dict in a file into a module; names and shapes must match."""
    tensors = read_tensors(file)
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        message = " ".join(str(error).split())
        raise ModelFileError(f"{file} does not fit {type(module).__name__}: {message:.400}") from None


def read_tensors(file: Path) -> dict[str, Any]:
    """Return the state dict in a file of safetensors or torch; other pickled objects are rejected."""
    torch = require("torch", "torch", what="torch models")
    is_safe = file.suffix == ".safetensors"
    safetensors = require("safetensors.torch", "timm", what=".safetensors files") if is_safe else None
    try:
        if safetensors is not None:
            return dict(safetensors.load_file(str(file)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about TorchScript, which is rejected below
            content = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ModelFileError(
            f"{file} contains objects other than tensors, which could run arbitrary code when unpickled; use "
            "torch.save(model.state_dict(), file), or torch.export.save for the whole model"
        ) from None
    except Exception as error:  # damaged files raise errors of any class, some without a message
        raise ModelFileError(f"cannot read {file}: {str(error) or type(error).__name__:.200}") from None
    for name in _WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(name), dict):
            content = content[name]
            break
    if not isinstance(content, dict) or not all(
        isinstance(value, torch.Tensor) for value in content.values()
    ):
        raise ModelFileError(f"{file} must contain a state dict, itself or under {', '.join(_WRAPPERS)}")
    if content and all(str(key).startswith("module.") for key in content):
        content = {key.removeprefix("module."): value for key, value in content.items()}
    return dict(content)


def logits_of(output: Any) -> Any:
    """Return the tensor in the output of a module: a tensor, the first of several, or `.logits`."""
    if isinstance(output, tuple | list) and output:
        output = output[0]
    output = getattr(output, "logits", output)
    if not hasattr(output, "detach"):
        raise ModelError(f"the module must return a tensor, got {type(output).__name__}")
    return output.float()

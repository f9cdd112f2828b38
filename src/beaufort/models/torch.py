"""Torch modules: in memory, as a state dict and an architecture, or as an exported program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.optional import require
from beaufort._core.validation import validate_integer
from beaufort.models._exported import open_exported
from beaufort.models.network import Network
from beaufort.models.options import TorchOptions, make_spec
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Logits, ModelError, ModelFileError, digest_of_files, digest_of_tensors

_WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "state_dict_ema")
"""Names under which training programs keep the state dict in a checkpoint."""


def load(path: str, *, arch: str | None = None, **options: Unpack[TorchOptions]) -> Network:
    """A network in a file of torch.

    An exported program (`.pt2`) brings its architecture and input size along; a state dict (`.pt`, `.pth`,
    `.th`, `.safetensors`, …) needs `arch`. Values are taken to be RGB in 0..1 unless something is said.

    Args:
        path: the file. Pickled modules are rejected: a pickle can run any program.
        arch: `python:package.module:factory`, which makes the module that the state dict fits.
        **options: see `TorchOptions`.
    """
    require("torch", "torch", what="torch models")
    file = Path(path)
    if not file.is_file():
        raise ModelFileError(f"{path} is not a file; write a torch model as torch:folder/model.pt2")
    if file.suffix == ".pt2":
        if arch is not None:
            raise OptionError(f"arch cannot be used with {path}, which is an exported program")
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
    if arch is None:
        raise OptionError(
            f"{path} needs arch=python:package.module:factory, where factory() makes the module of this "
            "state dict; files of torch.export.save (.pt2) need none"
        )
    module = _build(arch)
    load_weights(module, file)
    details = {"architecture": arch}
    return from_module(module, default_name=file.stem, source=f"torch:{path}", details=details, **options)


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
    """A network of a torch module, which is put onto the device, and predicts in evaluation mode.

    Args:
        module: the module.
        default_name: its name if the options have none.
        source: where it comes from.
        run: what gives the logits of a tensor of images; the module itself if not given.
        base: the preprocessing before the options' changes.
        weights: what identifies the parameters; their sha256 if not given.
        details: what else the predictions depend on.
        fixed_batch: the only number of images that it takes; fewer are filled up. A module that
            `torch.compile` made is filled up too, so that it is compiled once.
        exported: whether it is an exported program, which knows no modes.
        shared: whether somebody else has the module, who may train it: it is in its own mode again after each
            call, and weights that have changed are noticed.
        **options: see `TorchOptions`; the number of classes is found out if not given.
    """
    torch = require("torch", "torch", what="torch models")
    use_threads(options.get("threads"))
    where = choose_device(options.get("device", "auto"))
    channels_last, tf32 = options.get("channels_last", False), options.get("tf32", False)
    weights = weights or digest_of_tensors(module.state_dict())
    if not exported and not shared:
        module.eval()
    module.to(where)
    if channels_last:
        module.to(memory_format=torch.channels_last)
    before = _versions(module) if shared else []
    spec = make_spec(
        options,
        default_name=default_name,
        source=source,
        base=base or Preprocessing(),
        weights=weights,
        details={**(details or {}), **({"tf32": True} if tf32 else {})},
    )

    filled = _filling(fixed_batch, compiled=hasattr(module, "_orig_mod"))

    def ready(batch: Any) -> Any:
        batch = filled(batch)
        return batch.contiguous(memory_format=torch.channels_last) if channels_last else batch

    def logits(batch: Any) -> Any:
        steady = torch.backends.cudnn.flags(
            enabled=True, benchmark=False, deterministic=True, allow_tf32=tf32
        )
        with steady, _evaluation_mode(module) if shared else nullcontext():
            return _logits((run or module)(batch))

    def differentiable(batch: Any) -> Any:
        return logits(ready(batch))[: len(batch)]

    def predict(batch: Any) -> Any:
        whole = ready(batch)  # outside of inference mode: its tensors are another kind to the compiler
        with torch.inference_mode():
            return logits(whole)[: len(batch)].detach()

    def forward(batch: NDArray[Any]) -> Logits:
        found: Logits = predict(torch.from_numpy(batch).to(where)).cpu().numpy()
        return found

    def unchanged() -> bool:
        return _versions(module) == before or digest_of_tensors(module.state_dict()) == weights

    network = Network(
        spec,
        forward,
        where,
        options.get("max_batch"),
        predict,
        channels_last,
        differentiable,
        unchanged if shared else None,
    )
    if spec.classes is None and hasattr(module, "_orig_mod") and run is None:
        # A compiled module would be compiled for one image; what it was compiled from has as many classes.
        plain = from_module(
            module._orig_mod,
            default_name=spec.name,
            source=source,
            base=spec.preprocessing,
            shared=shared,
            device=where,
        )
        return replace(network, spec=replace(spec, classes=plain.spec.classes))
    return network.with_class_count()


@contextmanager
def _evaluation_mode(module: Any) -> Iterator[None]:
    """Have a module in evaluation mode, and each of its parts in its own mode again afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    if not any(training for _, training in modes):
        yield
        return
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:  # a module comes before its parts
            if part.training != training:
                part.train(training)


def _versions(module: Any) -> list[tuple[int, int]]:
    """Where each tensor of a module is, and how often torch has written to it."""
    tensors = module.state_dict().values()
    return [(one.data_ptr(), 0 if one.is_inference() else one._version) for one in tensors]


def _filling(fixed: int | None, *, compiled: bool) -> Callable[[Any], Any]:
    """Fill batches up with zeros where another number of images would be an error, or another compilation.

    A compiled module is compiled once for each number of images. So a batch that is smaller than one before
    it, as the last of a dataset, is filled up to that one's size.
    """
    largest = fixed or 0

    def filled(batch: Any) -> Any:
        nonlocal largest
        if compiled:
            largest = max(largest, len(batch))
        missing = largest - len(batch)
        if missing <= 0:
            return batch
        filler = batch.new_zeros((missing, *batch.shape[1:]))
        return require("torch", "torch", what="torch models").cat([batch, filler])

    return filled


def choose_device(device: str) -> str:
    """The device that a word stands for; `auto` is the first GPU, or the processor."""
    torch = require("torch", "torch", what="torch models")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise OptionError(f"device must be auto, cpu, cuda, cuda:0 or mps, got {device!r}") from None
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(kind, True):
        raise OptionError(f"torch finds no device {device!r} on this machine; use device='cpu'")
    return device


def use_threads(threads: int | None) -> None:
    """Let torch use so many threads, in the whole process; None leaves it as it is."""
    if threads is not None:
        torch = require("torch", "torch", what="torch models")
        torch.set_num_threads(validate_integer("threads", threads, 1, 4096))


def load_weights(module: Any, file: Path) -> None:
    """Fill a module with the tensors of a file; what does not fit is an error."""
    tensors = read_tensors(file)
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        told = " ".join(str(error).split())
        raise ModelFileError(
            f"the tensors of {file} do not fit {type(module).__name__}: {told:.400}"
        ) from None


def read_tensors(file: Path) -> dict[str, Any]:
    """The state dict in a file, safetensors or torch's own; nothing else is unpickled."""
    if file.suffix == ".safetensors":
        safetensors = require("safetensors.torch", "timm", what=".safetensors files")
        try:
            return dict(safetensors.load_file(str(file)))
        except Exception as error:  # its error class is not public everywhere
            raise ModelFileError(f"{file} cannot be read as safetensors ({error})") from None
    content = _read_pickle(file)
    for name in _WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(name), dict):
            content = content[name]
            break
    torch = require("torch", "torch", what="torch models")
    if not isinstance(content, dict) or not all(
        isinstance(value, torch.Tensor) for value in content.values()
    ):
        raise ModelFileError(
            f"{file} must hold a state dict (tensors by name), plain or under {', '.join(_WRAPPERS)}"
        )
    if content and all(str(key).startswith("module.") for key in content):
        content = {key.removeprefix("module."): value for key, value in content.items()}
    return dict(content)


def _read_pickle(file: Path) -> Any:
    import pickle
    import warnings

    torch = require("torch", "torch", what="torch models")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about TorchScript, which is refused below
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ModelFileError(
            f"{file} must hold only tensors, as unpickling other objects could run arbitrary code; save them "
            "with torch.save(model.state_dict(), file), or the whole model with torch.export.save"
        ) from None
    except Exception as error:  # bytes of anyone's may raise anything
        told = str(error) or type(error).__name__  # an empty file has no more to say than its kind
        raise ModelFileError(f"{file} cannot be read as a file of torch ({told:.200})") from None


def _build(arch: str) -> Any:
    from beaufort.models.python import find_object

    torch = require("torch", "torch", what="torch models")
    if not arch.startswith("python:"):
        raise OptionError(f"arch must have the form python:package.module:factory, got {arch!r}")
    made = find_object(arch.removeprefix("python:"))()
    if not isinstance(made, torch.nn.Module):
        raise ModelError(f"{arch} must return a torch module, got {type(made).__name__}")
    return made


def _logits(answer: Any) -> Any:
    """The tensor in what a module returned: a tensor, the first of several, or `.logits`."""
    if isinstance(answer, tuple | list) and answer:
        answer = answer[0]
    answer = getattr(answer, "logits", answer)
    if not hasattr(answer, "detach"):
        raise ModelError(f"the module must return a tensor, got {type(answer).__name__}")
    return answer.float()

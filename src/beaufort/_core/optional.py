"""Libraries that are imported when a model needs them, and not before."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from beaufort._core.errors import MissingExtraError

_kept: list[Any] = []
"""The definitions made by `prepare_torchvision`; they end when nobody holds them."""

_NEED_TORCHVISION = frozenset({"torchvision", "timm", "transformers", "open_clip", "diffusers"})


def installed(package: str) -> bool:
    """Whether a package is there; it is not imported."""
    return package in sys.modules or importlib.util.find_spec(package) is not None


def require(package: str, extra: str, *, what: str) -> Any:
    """An optional library, or an error that says how to install it.

    Args:
        package: as it is imported.
        extra: as in `pip install 'beaufort[extra]'`.
        what: what needs it, for the error.
    """
    if not installed(package):
        raise MissingExtraError(f"{what} need {package}: pip install 'beaufort[{extra}]'")
    try:
        if package in _NEED_TORCHVISION:
            prepare_torchvision()
        return _import(package)
    except ImportError as error:
        raise MissingExtraError(
            f"{what} need {package}, which is installed and cannot be imported ({error}); "
            f"pip install --upgrade 'beaufort[{extra}]' may mend it"
        ) from error


def _import(package: str) -> ModuleType:
    return importlib.import_module(package)


def prepare_torchvision() -> None:
    """Make torchvision importable where its compiled part does not fit the installed torch.

    torchvision describes two operators of its compiled part while it is imported, and fails if they do
    not exist, though no classifier uses them. Where the part cannot be loaded, as with a build for CUDA
    beside a torch for the CPU, they are declared without a body.
    """
    if _kept or "torchvision" in sys.modules or not (installed("torchvision") and installed("torch")):
        return
    torch: Any = _import("torch")
    if _compiled_part_loads():
        return
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)


def _compiled_part_loads() -> bool:
    spec = importlib.util.find_spec("torchvision")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    parts = [
        part for folder in folders for part in Path(folder).glob("_C*") if part.suffix in (".so", ".pyd")
    ]
    try:
        for part in parts:
            ctypes.CDLL(str(part))
    except OSError:
        return False
    return bool(parts)

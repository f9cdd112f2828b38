"""Optional packages, imported when they are needed."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from beaufort._core.errors import MissingExtraError

_kept: list[Any] = []
"""Keeps the definitions made by `prepare_torchvision` alive."""

_NEED_TORCHVISION = frozenset({"torchvision", "timm", "transformers", "open_clip", "diffusers"})


def installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    return package in sys.modules or importlib.util.find_spec(package) is not None


def require(package: str, extra: str, *, what: str) -> Any:
    """Import an optional package, or raise an error that says how to install it.

    Args:
        package: import name.
        extra: as in `pip install 'beaufort[extra]'`.
        what: plural noun for the error message: what needs the package.
    """
    if not installed(package):
        raise MissingExtraError(f"{what} need {package}: pip install 'beaufort[{extra}]'")
    try:
        if package in _NEED_TORCHVISION:
            prepare_torchvision()
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"{what} need {package}, which is installed but cannot be imported: {error}; "
            f"pip install --upgrade 'beaufort[{extra}]' may fix this"
        ) from error


def prepare_torchvision() -> None:
    """Make torchvision importable if its compiled extension does not match the installed torch.

    While it is imported, torchvision refers to two operators of its extension, which no classifier uses, and
    fails if they do not exist. If the extension cannot be loaded, such as a CUDA build with a CPU-only torch,
    the operators are declared without an implementation.
    """
    if _kept or "torchvision" in sys.modules or not (installed("torchvision") and installed("torch")):
        return
    torch: Any = importlib.import_module("torch")
    if _extension_loads():
        return
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)


def _extension_loads() -> bool:
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

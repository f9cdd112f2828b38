"""Beaufort: how well image classifiers hold up when their input stops looking like their training data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beaufort._core.errors import (
        AssetError,
        BeaufortError,
        ImageFileError,
        ImageTypeError,
        ImageValueError,
        MissingExtraError,
        OptionError,
        RenderError,
        SizeWarning,
        UnknownNameError,
    )
    from beaufort.corruptions import Corruption, corrupt, get_corruption_names
    from beaufort.evaluation import evaluate

__all__ = [
    "AssetError",
    "BeaufortError",
    "Corruption",
    "ImageFileError",
    "ImageTypeError",
    "ImageValueError",
    "MissingExtraError",
    "OptionError",
    "RenderError",
    "SizeWarning",
    "UnknownNameError",
    "__version__",
    "corrupt",
    "evaluate",
    "get_corruption_names",
]

__version__ = "0.1.0"

_HOMES = {
    **dict.fromkeys(["Corruption", "corrupt", "get_corruption_names"], "beaufort.corruptions"),
    "evaluate": "beaufort.evaluation",
}
"""Where names come from that are imported when they are first used; the others are errors."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'beaufort' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES.get(name, "beaufort._core.errors")), name)
    return value

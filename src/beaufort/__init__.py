"""Beaufort: how well image classifiers hold up when their input stops looking like their training data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaufort.corruptions import Corruption, corrupt, get_corruption_names
from beaufort.errors import BeaufortError

if TYPE_CHECKING:
    from beaufort.evaluation import evaluate

__all__ = [
    "BeaufortError",
    "Corruption",
    "__version__",
    "corrupt",
    "evaluate",
    "get_corruption_names",
]

__version__ = "0.1.0"


def __dir__() -> list[str]:
    """Also what is imported when first asked for."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """`evaluate` is imported when first asked for: a corruption needs no database."""
    if name == "evaluate":
        from beaufort.evaluation import evaluate

        return evaluate
    raise AttributeError(f"module 'beaufort' has no attribute {name!r}")

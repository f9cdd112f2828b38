"""Beaufort: how well image classifiers hold up when their input stops looking like their training data.

The names below cover what most users need. They are imported when they are first used, so `import beaufort`
is fast and loads no framework. The packages (`beaufort.corruptions`, `beaufort.data`, …) have more.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beaufort._core.errors import AssetError as AssetError
    from beaufort._core.errors import BeaufortError
    from beaufort._core.errors import ImageFileError as ImageFileError
    from beaufort._core.errors import ImageTypeError as ImageTypeError
    from beaufort._core.errors import ImageValueError as ImageValueError
    from beaufort._core.errors import MissingExtraError as MissingExtraError
    from beaufort._core.errors import OptionError as OptionError
    from beaufort._core.errors import RenderError as RenderError
    from beaufort._core.errors import SizeWarning as SizeWarning
    from beaufort._core.errors import UnknownNameError as UnknownNameError
    from beaufort._core.plugins import load_plugins
    from beaufort.corruptions import Corruption, corrupt, get_corruption_names
    from beaufort.corruptions.transforms import Corrupt
    from beaufort.data import from_arrays, load_dataset
    from beaufort.models import as_model, load_model
    from beaufort.report import write_report
    from beaufort.results import compare, evaluate, gate, open_results, score
    from beaufort.suites import Suite, get_suite
    from beaufort.testbed import place

__all__ = [
    "BeaufortError",
    "Corrupt",
    "Corruption",
    "Suite",
    "__version__",
    "as_model",
    "compare",
    "corrupt",
    "evaluate",
    "from_arrays",
    "gate",
    "get_corruption_names",
    "get_suite",
    "load_dataset",
    "load_model",
    "load_plugins",
    "open_results",
    "place",
    "score",
    "write_report",
]

__version__ = "0.1.0"

_HOMES = {
    name: f"beaufort.{module}"
    for module, names in {
        "_core.errors": "AssetError BeaufortError ImageFileError ImageTypeError ImageValueError "
        "MissingExtraError OptionError RenderError SizeWarning UnknownNameError",
        "_core.plugins": "load_plugins",
        "corruptions": "Corruption corrupt get_corruption_names",
        "corruptions.transforms": "Corrupt",
        "data": "from_arrays load_dataset",
        "models": "as_model load_model",
        "report": "write_report",
        "results": "compare evaluate gate open_results score",
        "suites": "Suite get_suite",
        "testbed": "place",
    }.items()
    for name in names.split()
}
"""The module of each name that is imported when it is first used."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'beaufort' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value

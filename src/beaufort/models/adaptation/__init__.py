"""Test-time adaptation: networks that change while they predict, one file for each method.

```python
from beaufort.models import load_model
model = load_model("timm:resnet50.a1_in1k", adapt="tent:lr=0.00025,optimizer=sgd")
```

A method is a frozen dataclass of its options, with the published defaults. It changes a `Learner`, a copy of
the network with an optimizer. Any other model can be adapted in Python: see `StatefulModel`.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields
from importlib import import_module
from typing import Any

from beaufort._core.errors import OptionError
from beaufort._core.optional import require
from beaufort._core.registry import unknown_message
from beaufort.models.adaptation.model import AdaptedModel
from beaufort.models.network import Network
from beaufort.models.spec import Model, ModelError

__all__ = ["METHODS", "SOURCE", "AdaptedModel", "adapt_model", "parse_method"]

SOURCE = "source"
"""Stands for the model itself, without adaptation."""
METHODS = {
    "bn": ("BatchStatistics", "statistics of the batch in batch normalization, with a prior"),
    "tent": ("Tent", "entropy minimization over the parameters of normalization layers"),
    "eata": ("Eata", "TENT on reliable and diverse images, with a Fisher regularizer"),
    "sar": ("Sar", "sharpness-aware TENT on reliable images, with recovery"),
    "cotta": ("Cotta", "averaged teacher, augmentations and stochastic restoration"),
}
"""Methods: the class in the module of the same name, and a summary."""


def adapt_model(model: Model, method: str) -> Model:
    """Return a model that adapts by a method, such as `tent:lr=0.001`; `source` returns the model itself."""
    if method == SOURCE:
        return model
    parsed = parse_method(method)
    if not isinstance(model, Network) or model.module is None:
        raise ModelError(
            f"{model.spec.name} cannot be adapted: methods change a torch module, such as one of the kinds "
            "torch (a state dict), timm and torchvision, without an image filter"
        )
    return AdaptedModel(model, method.partition(":")[0], parsed)


def parse_method(text: str) -> Any:
    """Return the method of a text `NAME:OPTION=VALUE,…`, with the defaults of other options."""
    name, _, rest = text.partition(":")
    if name not in METHODS:
        raise OptionError(unknown_message("adaptation method", name, (SOURCE, *METHODS)))
    require("torch", "torch", what="adaptation methods")
    kind = getattr(import_module(f"beaufort.models.adaptation.{name}"), METHODS[name][0])
    types = {field.name: type(field.default) for field in fields(kind) if field.default is not MISSING}
    values: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        option, equals, value = item.partition("=")
        if option not in types or option in values or not equals:
            raise OptionError(
                f"invalid option {item!r:.60} of {name}; available, each once: {', '.join(types)}"
            )
        try:
            values[option] = types[option](value)
        except ValueError:
            raise OptionError(f"{option} of {name} must be a number, got {value!r:.60}") from None
    method = kind(**values)
    for option, value in asdict(method).items():
        if isinstance(value, float | int) and not 0 <= value < float("inf"):
            raise OptionError(f"{option} of {name} must be a number from 0, got {value}")
    return method

"""Python objects as models: a `Model`, a torch module, or any function from images to logits."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, TypeGuard, Unpack

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.plugins import look_here_too
from beaufort._core.registry import unknown_message
from beaufort.models.network import Network
from beaufort.models.options import ModelOptions, TorchOptions, make_spec
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Model, ModelError, declared_weights, digest_of_layers

RAW_IMAGES = Preprocessing(value_range="0..255", layout="NHWC", dtype="uint8")
"""Default for a plain function, which receives the uint8 images unchanged."""


def load(text: str, *, version: str | None = None, **options: Unpack[TorchOptions]) -> Model:
    """Return the model that the function `package.module:factory` returns, by `as_model`."""
    model = find_object(text)
    if callable(model) and not _is_model(model):
        model = model()
        if not _is_model(model):
            options = {"name": text.rpartition(":")[2], **options}
            return as_model(model, source=f"python:{text}", version=version, **options)
    return as_model(model, version=version, **options)


def as_model(
    model: Any,
    *,
    source: str | None = None,
    version: str | None = None,
    **options: Unpack[TorchOptions],
) -> Model:
    """Return a Python object as a model.

    A `Model` is returned as it is. A torch module is moved to the device and stays there; it predicts in
    evaluation mode, and its own mode is restored after each call. Any other callable receives the uint8
    images `(n, h, w, c)`, preprocessed if any preprocessing option is given, and returns logits
    `(n, classes)`.

    Args:
        model: the object.
        source: description of its origin.
        version: a string that you change whenever predictions may change. Without it, results of a callable
            are never reused; those of a torch module are identified by its weights and the repr of its
            layers.
        **options: see `TorchOptions`; device options apply to torch modules only.
    """
    if _is_model(model):
        values = {"source": source, "version": version, **options}
        for option in ("source", "version", *ModelOptions.__annotations__):
            if values.get(option) is not None:
                raise OptionError(f"{option} cannot be used with a Model, which has its own spec")
        return model
    name = str(getattr(model, "__name__", type(model).__name__))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from beaufort.models.torch import from_module

        details = {"layers": digest_of_layers(model)}
        if version is not None:
            details["version"] = declared_weights(version)
        source = source or f"torch:{type(model).__name__}"
        return from_module(model, default_name=name, source=source, details=details, shared=True, **options)
    if not callable(model):
        raise ModelError(
            "a model must be a Model, a torch module, or a function from uint8 images (n, h, w, c) to "
            f"logits (n, classes), got {type(model).__name__}"
        )
    given_name = options.get("name")
    spec = make_spec(
        options,
        default_name=name,
        source=source or f"python:{name if given_name is None else given_name}",
        base=RAW_IMAGES if options.keys().isdisjoint(("range", "mean", "std")) else Preprocessing(),
        weights=declared_weights(version),
    )
    return Network(spec, model, "cpu", options.get("max_batch"))


def find_object(text: str) -> Any:
    """Import the object `package.module:name`."""
    module_name, _, path = text.partition(":")
    if not (module_name and path):
        raise OptionError(f"write Python models as python:package.module:factory, got 'python:{text}'")
    look_here_too()
    try:
        value: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise UnknownNameError(
                f"no module named {error.name!r} in sys.path or the working directory (python:{text})"
            ) from None
        raise
    for name in path.split("."):
        if not hasattr(value, name):
            public = [key for key in vars(value) if not key.startswith("_")]
            raise UnknownNameError(f"in {module_name}, {unknown_message('name', name, public)}")
        value = getattr(value, name)
    return value


def _is_model(thing: Any) -> TypeGuard[Model]:
    return isinstance(thing, Model) and not isinstance(thing, type)

"""Models that are Python objects: a `Model`, a torch module, or any function from images to logits."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Unpack

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.plugins import look_here_too
from beaufort._core.registry import unknown_message
from beaufort.models.network import Network
from beaufort.models.options import ModelOptions, TorchOptions, make_spec
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Model, ModelError, declared_weights, digest_of_layers

RAW_IMAGES = Preprocessing(value_range="0..255", layout="NHWC", dtype="uint8")
"""Default for a plain function, which gets the uint8 images unchanged."""

_OF_FLOATS = ("range", "mean", "std")
"""What can only be said of floats."""


def load(text: str, *, version: str | None = None, **options: Unpack[TorchOptions]) -> Model:
    """What `package.module:factory` makes, by `as_model`; a factory takes no arguments."""
    factory = find_object(text)
    if isinstance(factory, Model):
        return as_model(factory, version=version, **options)
    if not callable(factory):
        raise ModelError(
            f"python:{text} must be a function that returns a model, got {type(factory).__name__}"
        )
    made = factory()
    if _is_finished(made):
        return as_model(made, version=version, **options)
    options = {"name": text.rpartition(":")[2], **options}
    return as_model(made, source=f"python:{text}", version=version, **options)


def as_model(
    thing: Any,
    *,
    source: str | None = None,
    version: str | None = None,
    **options: Unpack[TorchOptions],
) -> Model:
    """A model of a Python object.

    A `Model` is given back as it is. A torch module goes through the torch adapter, which puts it onto the
    device and leaves it there; it predicts in evaluation mode, and is in its own mode again after each call.
    Any other callable gets the uint8 images `(n, h, w, c)` and returns logits `(n, classes)`; if anything is
    said about its preprocessing, it gets what that makes of them instead.

    Args:
        thing: the object.
        source: where it comes from.
        version: a word that you change whenever the predictions may. Without it the digest of a callable is
            `unknown`, and results are never taken from an earlier run; that of a torch module goes by its
            weights and by what it prints of its layers.
        **options: see `TorchOptions`; what is about devices is for torch modules.
    """
    if _is_finished(thing):
        said = {"source": source, "version": version, **options}
        about = {"source", "version", *ModelOptions.__annotations__}
        if given := [option for option in said if option in about and said[option] is not None]:
            raise OptionError(
                f"options cannot be used with a Model, which has a spec of its own, got {given[0]}; pass "
                "them where it is made, as as_model(function, classes=…)"
            )
        model: Model = thing
        return model
    called = str(getattr(thing, "__name__", type(thing).__name__))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, torch.nn.Module):
        from beaufort.models.torch import from_module

        details = {"layers": digest_of_layers(thing)}
        if version is not None:
            details["version"] = declared_weights(version)
        return from_module(
            thing,
            default_name=called,
            source=source or f"torch:{type(thing).__name__}",
            details=details,
            shared=True,
            **options,
        )
    if not callable(thing):
        raise ModelError(
            "a model must be a Model, a torch module, or a function from uint8 images (n, h, w, c) to "
            f"logits (n, classes), got {type(thing).__name__}"
        )
    name = options.get("name")
    spec = make_spec(
        options,
        default_name=called,
        source=source or f"python:{called if name is None else name}",
        base=RAW_IMAGES if options.keys().isdisjoint(_OF_FLOATS) else Preprocessing(),
        weights=declared_weights(version),
    )
    return Network(spec, thing, "cpu", options.get("max_batch"))


def find_object(text: str) -> Any:
    """The object that `package.module:name` stands for."""
    module_name, colon, path = text.partition(":")
    if not (colon and module_name and path):
        raise OptionError(
            f"a Python model must have the form python:package.module:factory, got 'python:{text}'"
        )
    look_here_too()
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise UnknownNameError(
                f"no module named {error.name!r} for python:{text}; sys.path and the working folder "
                "are searched"
            ) from None
        raise
    for name in path.split("."):
        if not hasattr(found, name):
            public = {key: None for key in vars(found) if not key.startswith("_")}
            raise UnknownNameError(f"in {module_name}, {unknown_message('name', name, public)}")
        found = getattr(found, name)
    return found


def _is_finished(thing: Any) -> bool:
    """Whether an object is a `Model` itself."""
    return isinstance(thing, Model) and not isinstance(thing, type)

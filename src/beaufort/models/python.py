"""Models that are Python objects: a `Model`, a torch module, or any function from images to logits."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Unpack

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.plugins import look_here_too
from beaufort._core.registry import unknown
from beaufort.models._digest import declared, digest_of_layers
from beaufort.models._errors import ModelError
from beaufort.models.network import Network
from beaufort.models.options import Changes, changed, class_list
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Model, ModelSpec

AS_THEY_ARE = Preprocessing(value_range="0..255", layout="NHWC", dtype="uint8")
"""Default for a plain function, which gets the uint8 images unchanged."""


def load(text: str, **options: Any) -> Model:
    """What `package.module:factory` makes, by `as_model`; a factory takes no arguments."""
    factory = find_object(text)
    if isinstance(factory, Model):
        return as_model(factory, **options)
    if not callable(factory):
        raise ModelError(
            f"python:{text} must be a function that returns a model, got {type(factory).__name__}"
        )
    made = factory()
    if not _is_finished(made):
        options = {"name": text.rpartition(":")[2], "source": f"python:{text}", **options}
    return as_model(made, **options)


def as_model(
    thing: Any,
    *,
    name: str | None = None,
    source: str | None = None,
    classes: Any = None,
    label_space: str | None = None,
    version: str | None = None,
    max_batch: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    channels_last: bool = False,
    tf32: bool = False,
    **changes: Unpack[Changes],
) -> Model:
    """A model of a Python object.

    A `Model` is given back as it is. A torch module goes through the torch adapter, which puts it onto the
    device and leaves it there; it answers in evaluation mode, and is in its own mode again after each call.
    Any other callable gets the uint8 images `(n, h, w, c)` and returns logits `(n, classes)`; if anything is
    said about its preprocessing, it gets what that makes of them instead.

    Args:
        thing: the object.
        name: what tables call it.
        source: where it comes from.
        classes: how many, a list of names, or a text file of them.
        label_space: what the classes are, `imagenet-1k` say.
        version: a word that you change whenever the answers may. Without it the digest of a callable is
            `unknown`, and results are never taken from an earlier run; that of a torch module goes by its
            weights and by what it prints of its layers.
        max_batch: the most images to run at once.
        device: for torch modules.
        threads: for torch modules.
        channels_last: for torch modules.
        tf32: for torch modules.
        **changes: what is known about the preprocessing.
    """
    if _is_finished(thing):
        said = {
            "name": name,
            "source": source,
            "classes": classes,
            "label_space": label_space,
            "version": version,
            "max_batch": max_batch,
            **changes,
        }
        if given := [option for option, value in said.items() if value is not None or option in changes]:
            raise OptionError(
                f"options must not be given for a Model, which has a spec of its own, got {given[0]}; give "
                "them where it is made, as as_model(function, classes=…)"
            )
        model: Model = thing
        return model
    called = str(getattr(thing, "__name__", type(thing).__name__)) if name is None else name
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, torch.nn.Module):
        from beaufort.models.torch import from_module

        return from_module(
            thing,
            name=called,
            source=source or f"torch:{type(thing).__name__}",
            classes=classes,
            label_space=label_space,
            max_batch=max_batch,
            device=device,
            threads=threads,
            channels_last=channels_last,
            tf32=tf32,
            details={
                "layers": digest_of_layers(thing),
                **({} if version is None else {"version": declared(version)}),
            },
            shared=True,
            **changes,
        )
    if not callable(thing):
        raise ModelError(
            "a model must be a Model, a torch module, or a function from uint8 images (n, h, w, c) to "
            f"logits (n, classes), got {type(thing).__name__}"
        )
    count, names = class_list(classes)
    spec = ModelSpec(
        name=called,
        source=source or f"python:{called}",
        preprocessing=_preprocessing(changes),
        classes=count,
        class_names=names,
        label_space=label_space,
        weights=declared(version),
    )
    return Network(spec, thing, "cpu", max_batch)


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
            raise UnknownNameError(f"in {module_name}, {unknown('name', name, public)}")
        found = getattr(found, name)
    return found


def _is_finished(thing: Any) -> bool:
    """Whether an object is a `Model` itself."""
    return isinstance(thing, Model) and not isinstance(thing, type)


def _preprocessing(changes: Changes) -> Preprocessing:
    """Uint8 images, or floats where anything is said that only floats can be."""
    if not changes.keys() - {"input_size", "resize", "interpolation", "channels", "layout", "order", "dtype"}:
        return changed(AS_THEY_ARE, changes)
    return changed(Preprocessing(), changes)

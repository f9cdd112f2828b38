"""Load models by kind and name, such as `onnx:resnet50.onnx`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from beaufort._core.errors import BeaufortError, OptionError, UnknownNameError
from beaufort._core.optional import installed
from beaufort._core.plugins import offered
from beaufort._core.registry import Registry, unknown_message
from beaufort.models.filtered import with_filter
from beaufort.models.filters import ImageFilter, load_filter
from beaufort.models.options import option_names
from beaufort.models.spec import Model, ModelFileError


@dataclass(frozen=True)
class Adapter:
    """A kind of model: how to write it, and the function that loads it."""

    kind: str
    loads: str
    """`module:function`; imported when the first model of the kind is loaded."""
    needs: tuple[str, ...]
    """Import names of the required packages."""
    extra: str
    """Name of the extra that installs them, as in `pip install 'beaufort[…]'`; empty for the core."""
    example: str
    summary: str

    @property
    def missing(self) -> tuple[str, ...]:
        """The required packages that are not installed."""
        return tuple(package for package in self.needs if not installed(package))

    @property
    def install(self) -> str:
        """The command that installs the missing packages; empty if there are none."""
        if not self.missing:
            return ""
        return (
            f"pip install 'beaufort[{self.extra}]'" if self.extra else f"pip install {' '.join(self.missing)}"
        )

    def load(self, rest: str, options: dict[str, Any]) -> Model:
        """Load the model named by the text after `kind:`."""
        for name in options:
            if name not in self.options:
                raise OptionError(unknown_message(f"option of {self.kind} models", name, self.options))
        return self._loader(rest, **options)

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its options."""
        return option_names(self._loader)

    @property
    def _loader(self) -> Callable[..., Model]:
        module, _, name = self.loads.partition(":")
        loader: Callable[..., Model] = getattr(import_module(module), name)
        return loader


adapters: Registry[Adapter] = Registry("kind of model", group="beaufort.model_kinds")
"""Adapters by kind."""

_SUFFIXES = {".onnx": "onnx", ".pt2": "torch", ".xml": "openvino", ".tflite": "litert"}
"""Kinds of files that are recognized by their names."""

models: Registry[str] = Registry("model")
"""Models registered by name: `models.register("house-net", "python:house.nets:resnet")`."""


def _register(kind: str, example: str, summary: str, *packages: str) -> None:
    extra = "" if packages in ((), ("onnxruntime",)) else kind
    loads = f"beaufort.models.{kind}:load"
    adapters.register(kind, Adapter(kind, loads, packages, extra, example, summary))


_register("onnx", "onnx:resnet50.onnx", "ONNX file, run by ONNX Runtime", "onnxruntime")
_register("openvino", "openvino:model.xml", "OpenVINO model, or an ONNX file run by OpenVINO", "openvino")
_register("litert", "litert:model.tflite", "LiteRT (TensorFlow Lite) model", "ai_edge_litert")
_register("python", "python:package.module:factory", "function that returns a model or a torch module")
_register("torch", "torch:model.pt2", "exported program, or a state dict with arch=python:…", "torch")
_register("timm", "timm:resnet50.a1_in1k", "model of timm", "torch", "torchvision", "timm")
_register("torchvision", "torchvision:resnet50.IMAGENET1K_V2", "model of torchvision", "torch", "torchvision")
_register(
    *("transformers", "transformers:microsoft/resnet-50", "image classifier of transformers"),
    *("torch", "torchvision", "transformers"),
)
_register(
    *("open_clip", "open_clip:ViT-B-32/laion2b_s34b_b79k", "zero-shot classifier of open_clip"),
    *("torch", "torchvision", "open_clip"),
)
_register("http", "https://host/classify", "web service that returns logits")
_register("chat", "chat:http://host/v1#name", "vision-language model that is asked for the class")
_register("demo", "demo:digits", "example models: digits, and efficientnet-lite0 for photos", "onnxruntime")


def load_model(
    text: str,
    *,
    filter: str | ImageFilter | Sequence[str] | None = None,  # noqa: A002
    adapt: str | None = None,
    **options: Any,
) -> Model:
    """Return a model by kind and name.

    Args:
        text: `kind:name`, as in the examples of `beaufort ls models`; a path that ends in `.onnx` or
            `.pt2`, `.xml` (OpenVINO) or `.tflite`; a URL; or the name of a registered model.
        filter: an image filter to apply before the model, such as `clahe:clip=2,tiles=8`; or a list of them.
        adapt: a method by which the model adapts while it is tested, such as `tent:lr=0.001`; `source` for
            none. The model is then a `StatefulModel`.
        **options: options of the kind's `load` function, among them `PreprocessingOptions`.
    """
    if adapt is not None:
        from beaufort.models.adaptation import SOURCE, adapt_model, parse_method

        if adapt == SOURCE:
            return load_model(text, filter=filter, **options)
        parse_method(adapt)  # report errors in it before loading a network
        return adapt_model(load_model(text, filter=filter, **options), adapt)
    if filter is not None:
        image_filter = load_filter(filter)  # report errors in it before loading a network
        return with_filter(load_model(text, **options), image_filter, threads=options.get("threads"))
    kind, rest = _split(text)
    try:
        return adapters[kind].load(rest, options)
    except BeaufortError:
        raise
    except OSError as error:  # such as missing permissions, or a name too long for a file
        if kind == "python":
            raise  # an error in the user's own code
        raise ModelFileError(f"cannot open {text!r:.200}: {error.strerror or error}") from error


def adapter_of(text: str) -> Adapter:
    """Return the adapter that `load_model` uses for a text."""
    return adapters[_split(text)[0]]


def model_names() -> dict[str, str]:
    """Return the names of registered models and what they load, without importing any.

    A package provides models by entry points of the group `beaufort.models`, `name = "module:factory"`.
    """
    return {**{name: f"python:{entry.value}" for name, entry in offered("beaufort.models").items()}, **models}


def _split(text: str) -> tuple[str, str]:
    """Return the kind and the name of a model.

    >>> _split("nets/resnet50.onnx"), _split("timm:resnet50"), _split("http://127.0.0.1/classify")
    (('onnx', 'nets/resnet50.onnx'), ('timm', 'resnet50'), ('http', 'http://127.0.0.1/classify'))
    """
    if not isinstance(text, str):
        raise OptionError(f"model must be a string, got {text!r:.60}; {_accepted()}")
    text = model_names().get(text.strip(), text.strip())
    if re.match(r"https?://", text, re.IGNORECASE):
        return "http", text
    kind, colon, rest = text.partition(":")
    if colon and kind in adapters and rest:
        return kind, rest
    if not rest and (colon or not kind):
        raise OptionError(f"missing name in model {text!r}; {_accepted()}")
    if re.fullmatch(r"\w+", kind) and colon and len(kind) > 1:
        raise UnknownNameError(unknown_message("kind of model", kind, {**adapters, "https": None}))
    for suffix, adapter in _SUFFIXES.items():
        if text.lower().endswith(suffix):
            return adapter, text
    near = get_close_matches(text, model_names())
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise UnknownNameError(f"unknown model {text!r}; {hint}{_accepted()}")


def _accepted() -> str:
    return f"write {', '.join(adapter.example for adapter in adapters.values())}, or a registered name"

"""From a text to a model: which adapter, and where it is."""

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
    """A kind of model: what its text looks like and what loads it."""

    kind: str
    loads: str
    """`module:function`; imported when the first model of the kind is loaded."""
    needs: tuple[str, ...]
    """Packages, as they are imported."""
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
        """The command that adds what is missing; empty if nothing is."""
        if not self.missing:
            return ""
        return (
            f"pip install 'beaufort[{self.extra}]'" if self.extra else f"pip install {' '.join(self.missing)}"
        )

    def load(self, rest: str, options: dict[str, Any]) -> Model:
        """The model that the text after `kind:` stands for."""
        for name in options:
            if name not in self.options:
                known = dict.fromkeys(self.options)
                raise OptionError(unknown_message(f"option of {self.kind} models", name, known))
        return self._loader(rest, **options)

    @property
    def options(self) -> tuple[str, ...]:
        """Names of its options."""
        return option_names(self._loader)

    @property
    def _loader(self) -> Callable[..., Model]:
        module, _, name = self.loads.partition(":")
        loader: Callable[..., Model] = getattr(import_module(module), name)
        return loader


adapters: Registry[Adapter] = Registry("kind of model", group="beaufort.model_kinds")
"""Every adapter by the word that its texts begin with."""

models: Registry[str] = Registry("model")
"""Models by a name of their own: `models.register("house-net", "python:house.nets:resnet")`."""


def _register(kind: str, example: str, summary: str, *needs: str) -> None:
    """Register a kind of this package; its module, and the extra that brings torch, are called like it."""
    extra = kind if "torch" in needs else ""
    adapters.register(kind, Adapter(kind, f"beaufort.models.{kind}:load", needs, extra, example, summary))


_register("onnx", "onnx:resnet50.onnx", "an ONNX file, run by ONNX Runtime", "onnxruntime")
_register(
    "python",
    "python:package.module:factory",
    "a function of yours that makes a model, a torch module or a callable",
)
_register(
    "torch",
    "torch:model.pt2",
    "an exported program, or a state dict with arch=python:package.module:factory",
    "torch",
)
_register(
    "timm",
    "timm:resnet50.a1_in1k",
    "a model of timm, with its own preprocessing",
    *("torch", "torchvision", "timm"),
)
_register(
    "torchvision",
    "torchvision:resnet50.IMAGENET1K_V2",
    "a model of torchvision, with the preprocessing of its weights",
    *("torch", "torchvision"),
)
_register(
    "transformers",
    "transformers:microsoft/resnet-50",
    "an image classifier of transformers, by folder or name",
    *("torch", "torchvision", "transformers"),
)
_register(
    "open_clip",
    "open_clip:ViT-B-32/laion2b_s34b_b79k",
    "zero-shot classification by CLIP, from class names and templates",
    *("torch", "torchvision", "open_clip"),
)
_register("http", "https://host/classify", "a service that answers images with logits")
_register(
    "demo",
    "demo:digits",
    "for a first try: digits, which Beaufort brings along, and efficientnet-lite0, which is fetched",
    "onnxruntime",
)


def load_model(
    text: str,
    *,
    filter: str | ImageFilter | Sequence[str] | None = None,  # noqa: A002
    **options: Any,
) -> Model:
    """The model that a text stands for.

    Args:
        text: `kind:where`, as in the examples of `beaufort ls models`; a path that ends in `.onnx` or
            `.pt2`; an address; or the name of a registered model.
        filter: an image filter before the model, as `clahe:clip=2,tiles=8`; several in their order.
        **options: what to know or change: those of the kind's `load`, among them `PreprocessingOptions`.
    """
    if filter is not None:
        chosen = load_filter(filter)  # a mistake in it is told before a network is loaded
        return with_filter(load_model(text, **options), chosen, threads=options.get("threads"))
    kind, rest = _split(text)
    try:
        return adapters[kind].load(rest, options)
    except BeaufortError:
        raise
    except OSError as error:  # a file that may not be read, a name that no file can have
        if kind == "python":
            raise  # what a program of the user's meets is the user's
        raise ModelFileError(f"{text!r:.200} cannot be opened ({error.strerror or error})") from error


def adapter_of(text: str) -> Adapter:
    """What `load_model` loads a text with."""
    return adapters[_split(text)[0]]


def model_names() -> dict[str, str]:
    """Registered models and what they load, of this process and of installed packages; none is imported.

    A package offers models by entry points of the group `beaufort.models`, `name = "module:factory"`.
    """
    return {**{name: f"python:{one.value}" for name, one in offered("beaufort.models").items()}, **models}


def _split(text: str) -> tuple[str, str]:
    """The kind of a model and where it is.

    >>> _split("nets/resnet50.onnx"), _split("timm:resnet50"), _split("http://127.0.0.1/classify")
    (('onnx', 'nets/resnet50.onnx'), ('timm', 'resnet50'), ('http', 'http://127.0.0.1/classify'))
    """
    if not isinstance(text, str) or not text.strip():
        raise OptionError(f"a model must be a non-empty string, got {text!r}; {_accepted()}")
    text = model_names().get(text.strip(), text.strip())
    if re.match(r"https?://", text, re.IGNORECASE):
        return "http", text
    kind, colon, rest = text.partition(":")
    if colon and kind in adapters and rest:
        return kind, rest
    if colon and not rest:
        raise OptionError(f"a model needs a name after the colon, got {text!r}; {_accepted()}")
    if re.fullmatch(r"\w+", kind) and colon and len(kind) > 1:
        raise UnknownNameError(unknown_message("kind of model", kind, {**adapters, "https": None}))
    for ending, of in ((".onnx", "onnx"), (".pt2", "torch")):
        if text.lower().endswith(ending):
            return of, text
    near = get_close_matches(text, model_names())
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise UnknownNameError(f"unknown model {text!r}; {hint}{_accepted()}")


def _accepted() -> str:
    examples = ", ".join(adapter.example for adapter in adapters.values())
    return f"a model is written as {examples}, or by the name it is registered under"

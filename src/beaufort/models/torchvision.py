"""Models of torchvision, with the preprocessing of their weights."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.optional import require
from beaufort._core.registry import unknown_message
from beaufort.models.network import Network
from beaufort.models.options import TorchOptions, class_list
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError
from beaufort.models.torch import from_module, load_weights


def load(text: str, *, pretrained: bool = True, **options: Unpack[TorchOptions]) -> Network:
    """A classifier of torchvision: `name`, `name.WEIGHTS`, or `name@file` for weights of your own.

    Args:
        text: as torchvision names it, `resnet50` or `resnet50.IMAGENET1K_V1`; a file is a state dict.
        pretrained: whether the published weights are loaded, which may download them; False leaves
            random ones. Without meaning where a file is given.
        **options: see `TorchOptions`; published weights bring classes and label space along.
    """
    require("torchvision", "torchvision", what="torchvision models")
    library = import_module("torchvision.models")

    wanted, _, file = text.partition("@")
    architecture, _, tag = wanted.partition(".")
    weights = _weights(library, architecture, tag)
    count, _ = class_list(options.get("classes"))
    if pretrained and not file:
        # the file is seen to hold tensors only, before torchvision loads it by its own means
        weights.get_state_dict(progress=False, check_hash=True, weights_only=True)
        module = library.get_model(architecture, weights=weights, progress=False)
        if options.get("classes") is None:
            options["classes"] = weights.meta["categories"]
            options["label_space"] = options.get("label_space") or "imagenet-1k"
    else:
        settings = {} if count is None else {"num_classes": count}
        module = library.get_model(architecture, weights=None, **_no_warnings(architecture), **settings)
    if file:
        load_weights(module, Path(file))
    return from_module(
        module,
        default_name=f"{architecture}.{Path(file).stem}" if file else wanted,
        source=f"torchvision:{text}",
        base=_preprocessing(weights.transforms()),
        details={"architecture": f"torchvision:{architecture}"},
        **options,
    )


def _weights(library: Any, architecture: str, tag: str) -> Any:
    names = library.list_models(module=library)
    if architecture not in names:
        raise UnknownNameError(unknown_message("classifier of torchvision", architecture, names))
    published = library.get_model_weights(architecture)
    if not tag:
        return published.DEFAULT
    if tag not in published.__members__:
        there = ", ".join(published.__members__)
        raise OptionError(f"torchvision has no weights {tag!r} for {architecture}; there are {there}")
    return published[tag]


def _no_warnings(architecture: str) -> dict[str, Any]:
    """The two networks that ask to be told how their random weights are made."""
    return {"init_weights": False} if architecture in ("googlenet", "inception_v3") else {}


def _preprocessing(transforms: Any) -> Preprocessing:
    """What torchvision's preset for classification says."""
    try:
        crop, short = transforms.crop_size, transforms.resize_size
        return Preprocessing(
            size=(crop[0], crop[-1]),
            resize=short[0] if len(short) == 1 else tuple(short),
            interpolation=transforms.interpolation.value,
            mean=tuple(transforms.mean),
            std=tuple(transforms.std),
        )
    except AttributeError:
        raise ModelError(
            f"the preprocessing of this model is not supported: {type(transforms).__name__} of torchvision; "
            "load it with python:package.module:factory instead"
        ) from None

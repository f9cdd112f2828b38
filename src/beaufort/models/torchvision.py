"""Models of torchvision, with the preprocessing of their weights."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

from beaufort._core.optional import require
from beaufort._core.validation import validate_choice
from beaufort.models.network import Network
from beaufort.models.options import TorchOptions, class_list
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError
from beaufort.models.torch import from_module, load_weights


def load(text: str, *, pretrained: bool = True, **options: Unpack[TorchOptions]) -> Network:
    """Return a classifier of torchvision: `name`, `name.WEIGHTS`, or `name@file` for own weights.

    Args:
        text: the name in torchvision, `resnet50` or `resnet50.IMAGENET1K_V1`; the file is a state dict.
        pretrained: whether to load, and possibly download, the published weights; False initializes them
            randomly. Ignored if a file is given.
        **options: see `TorchOptions`; published weights provide classes and label space.
    """
    require("torchvision", "torchvision", what="torchvision models")
    library = import_module("torchvision.models")

    name, _, file = text.partition("@")
    architecture, _, tag = name.partition(".")
    validate_choice("classifier of torchvision", architecture, library.list_models(module=library))
    weights = library.get_model_weights(architecture)
    if tag:
        validate_choice(f"weights of {architecture}", tag, weights.__members__)
    weights = weights[tag] if tag else weights.DEFAULT
    count, _ = class_list(options.get("classes"))
    if pretrained and not file:
        # check that the file holds only tensors before torchvision loads it in its own way
        weights.get_state_dict(progress=False, check_hash=True, weights_only=True)
        module = library.get_model(architecture, weights=weights, progress=False)
        if options.get("classes") is None:
            options["classes"] = weights.meta["categories"]
            options["label_space"] = options.get("label_space") or "imagenet-1k"
    else:
        settings: dict[str, Any] = {} if count is None else {"num_classes": count}
        if architecture in ("googlenet", "inception_v3"):  # avoids a warning
            settings["init_weights"] = False
        module = library.get_model(architecture, weights=None, **settings)
    if file:
        load_weights(module, Path(file))
    return from_module(
        module,
        default_name=f"{architecture}.{Path(file).stem}" if file else name,
        source=f"torchvision:{text}",
        base=_preprocessing(weights.transforms()),
        details={"architecture": f"torchvision:{architecture}"},
        **options,
    )


def _preprocessing(transforms: Any) -> Preprocessing:
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
            f"transforms {type(transforms).__name__} of torchvision are not supported; "
            "load the model with python:package.module:factory"
        ) from None

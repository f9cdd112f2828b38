"""Models of timm, with the preprocessing that each brings along."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Unpack

from beaufort._core.errors import UnknownNameError
from beaufort._core.optional import require
from beaufort._core.registry import unknown_message
from beaufort.models.network import Network
from beaufort.models.options import TorchOptions, class_list
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError
from beaufort.models.torch import from_module, load_weights


def load(text: str, *, pretrained: bool = True, **options: Unpack[TorchOptions]) -> Network:
    """A model of timm: `architecture`, `architecture.tag`, or `architecture@file` for weights of your own.

    Args:
        text: as timm names it, `resnet50.a1_in1k` say; a file is a state dict.
        pretrained: whether timm loads the published weights, which it may download; False leaves random
            ones. Without meaning where a file is given.
        **options: see `TorchOptions`; timm knows the classes, and its tag the label space of `in1k`.
    """
    timm = require("timm", "timm", what="timm models")
    architecture, _, file = text.partition("@")
    if not timm.is_model(architecture) and not architecture.startswith(("hf-hub:", "hf_hub:")):
        known = dict.fromkeys(timm.list_models() + timm.list_pretrained())
        raise UnknownNameError(_unknown(architecture, known))
    pretrained = pretrained and not file
    count, _ = class_list(options.get("classes"))
    settings: dict[str, Any] = {}
    if count is not None and not pretrained:
        settings["num_classes"] = count
    if "channels" in options:
        settings["in_chans"] = options["channels"]
    module = timm.create_model(architecture, pretrained=pretrained, **settings)
    if file:
        load_weights(module, Path(file))
    if options.get("label_space") is None and pretrained and "in1k" in str(module.pretrained_cfg.get("tag")):
        options["label_space"] = "imagenet-1k"
    return from_module(
        module,
        default_name=f"{architecture}.{Path(file).stem}" if file else architecture,
        source=f"timm:{text}",
        base=_preprocessing(timm, module, options),
        details={"architecture": f"timm:{architecture.partition('.')[0]}"},
        **options,
    )


def _preprocessing(timm: Any, module: Any, options: TorchOptions) -> Preprocessing:
    config = timm.data.resolve_model_data_config(module)
    channels, *size = config["input_size"]
    scaled = tuple(math.floor(side / config["crop_pct"]) for side in size)
    mode = config["crop_mode"]
    if mode == "squash":
        resize: Any = scaled
    elif mode == "center" and len(set(size)) == 1:
        resize = scaled[0]
    elif {"resize", "input_size"} & options.keys():
        resize = tuple(size)
    else:
        raise ModelError(
            f"the preprocessing of this model is not supported: crop mode {mode!r} of timm at "
            f"{size[0]}×{size[1]}; give resize=, a short side or a height and width"
        )
    return Preprocessing(
        size=tuple(size),
        resize=resize,
        interpolation=config["interpolation"],
        channels=channels,
        mean=tuple(config["mean"])[:channels],
        std=tuple(config["std"])[:channels],
    )


def _unknown(architecture: str, known: dict[str, None]) -> str:
    told = unknown_message("model of timm", architecture, known)
    return (
        told
        if "did you mean" in told
        else f"{architecture!r} is not a model of timm; timm.list_models() lists them"
    )

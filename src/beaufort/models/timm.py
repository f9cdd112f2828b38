"""Models of timm, with their preprocessing."""

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
    """Return a model of timm: `architecture`, `architecture.tag`, or `architecture@file` for own weights.

    Args:
        text: the name in timm, such as `resnet50.a1_in1k`; the file is a state dict.
        pretrained: whether to load, and possibly download, the published weights; False initializes them
            randomly. Ignored if a file is given.
        **options: see `TorchOptions`; timm provides the classes, and the tag `in1k` the label space.
    """
    timm = require("timm", "timm", what="timm models")
    architecture, _, file = text.partition("@")
    if not timm.is_model(architecture) and not architecture.startswith(("hf-hub:", "hf_hub:")):
        names = timm.list_models() + timm.list_pretrained()
        raise UnknownNameError(unknown_message("model of timm", architecture, names))
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
        raise ModelError(f"crop mode {mode!r} of timm is not supported at {size[0]}×{size[1]}; pass resize=")
    return Preprocessing(
        size=tuple(size),
        resize=resize,
        interpolation=config["interpolation"],
        channels=channels,
        mean=tuple(config["mean"])[:channels],
        std=tuple(config["std"])[:channels],
    )

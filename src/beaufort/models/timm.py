"""Models of timm, with the preprocessing that each brings along."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Unpack

from beaufort._core.errors import UnknownNameError
from beaufort._core.optional import require
from beaufort._core.registry import unknown
from beaufort.models._errors import ModelError
from beaufort.models.network import Network
from beaufort.models.options import Changes, class_list
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.torch import from_module, load_weights


def load(
    text: str,
    *,
    pretrained: bool = True,
    name: str | None = None,
    classes: Any = None,
    label_space: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    max_batch: int | None = None,
    channels_last: bool = False,
    tf32: bool = False,
    **changes: Unpack[Changes],
) -> Network:
    """A model of timm: `architecture`, `architecture.tag`, or `architecture@file` for weights of your own.

    Args:
        text: as timm names it, `resnet50.a1_in1k` say; a file is a state dict.
        pretrained: whether timm loads the published weights, which it may download; False leaves random
            ones. Without meaning where a file is given.
        name: what tables call it; the text if not given.
        classes: how many, a list of names, or a text file of them; timm knows if not given.
        label_space: what the classes are; timm's tag tells for `in1k`.
        device: as for torch models.
        threads: as for torch models.
        max_batch: the most images to run at once.
        channels_last: as for torch models.
        tf32: as for torch models.
        **changes: what is to be different about the preprocessing.
    """
    timm = require("timm", "timm", what="timm models")
    architecture, _, file = text.partition("@")
    if not timm.is_model(architecture) and not architecture.startswith(("hf-hub:", "hf_hub:")):
        known = dict.fromkeys(timm.list_models() + timm.list_pretrained())
        raise UnknownNameError(_told(architecture, known))
    pretrained = pretrained and not file
    count, _ = class_list(classes)
    settings: dict[str, Any] = {}
    if count is not None and not pretrained:
        settings["num_classes"] = count
    if "channels" in changes:
        settings["in_chans"] = changes["channels"]
    module = timm.create_model(architecture, pretrained=pretrained, **settings)
    if file:
        load_weights(module, Path(file))
    if label_space is None and pretrained and "in1k" in str(module.pretrained_cfg.get("tag")):
        label_space = "imagenet-1k"
    return from_module(
        module,
        name=name or (f"{architecture}.{Path(file).stem}" if file else architecture),
        source=f"timm:{text}",
        base=_preprocessing(timm, module, changes),
        details={"architecture": f"timm:{architecture.partition('.')[0]}"},
        classes=classes,
        label_space=label_space,
        device=device,
        threads=threads,
        max_batch=max_batch,
        channels_last=channels_last,
        tf32=tf32,
        **changes,
    )


def _preprocessing(timm: Any, module: Any, changes: Changes) -> Preprocessing:
    config = timm.data.resolve_model_data_config(module)
    channels, *size = config["input_size"]
    scaled = tuple(math.floor(side / config["crop_pct"]) for side in size)
    mode = config["crop_mode"]
    if mode == "squash":
        resize: Any = scaled
    elif mode == "center" and len(set(size)) == 1:
        resize = scaled[0]
    elif {"resize", "input_size"} & changes.keys():
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


def _told(architecture: str, known: dict[str, None]) -> str:
    told = unknown("model of timm", architecture, known)
    return (
        told
        if "did you mean" in told
        else f"{architecture!r} is not a model of timm; timm.list_models() lists them"
    )

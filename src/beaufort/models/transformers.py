"""Image classifiers of transformers, by the folder or name that it loads them from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from beaufort._core.optional import require
from beaufort.models.network import Network
from beaufort.models.options import TorchOptions
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError
from beaufort.models.torch import from_module

_ELSEWHERE = ("transformers_version", "_name_or_path", "dtype", "torch_dtype", "id2label", "label2id")
"""What a configuration says that changes no answer."""

_FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""Pillow's numbers of its filters."""


def load(text: str, **options: Unpack[TorchOptions]) -> Network:
    """An image classifier of transformers: a folder of `save_pretrained`, or a name on its hub.

    Its preprocessing is read from the image processor beside it. Code that comes with a model is not run.

    Args:
        text: folder or name.
        **options: see `TorchOptions`; the configuration knows the classes.
    """
    transformers = require("transformers", "transformers", what="transformers models")
    local = Path(text).is_dir()
    try:
        module = transformers.AutoModelForImageClassification.from_pretrained(
            text, local_files_only=local, trust_remote_code=False
        ).float()
        processor = transformers.AutoImageProcessor.from_pretrained(
            text, local_files_only=local, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        told = " ".join(str(error).split())
        raise ModelError(f"transformers cannot load an image classifier from {text!r}: {told:.300}") from None
    if options.get("classes") is None:
        labels = module.config.id2label
        options["classes"] = [str(labels[index]) for index in range(module.config.num_labels)]
    config = {key: value for key, value in module.config.to_diff_dict().items() if key not in _ELSEWHERE}
    return from_module(
        module,
        default_name=Path(text).name,
        source=f"transformers:{text}",
        base=_preprocessing(processor.to_dict(), module.config, options),
        details={"architecture": f"transformers:{type(module).__name__}", "config": _plain(config)},
        **options,
    )


def _preprocessing(processor: dict[str, Any], config: Any, options: TorchOptions) -> Preprocessing:
    size, resize = _sizes(processor, config, options)
    rescaled = processor.get("do_rescale", True)
    factor = processor.get("rescale_factor", 1 / 255)
    if (rescaled and abs(factor * 255 - 1) > 1e-6) or processor.get("rescale_offset"):
        raise ModelError(
            f"the preprocessing of this model is not supported: its image processor multiplies values by "
            f"{factor}, or shifts them; load it with python:package.module:factory"
        )
    normalized = processor.get("do_normalize", False)
    return Preprocessing(
        size=size,
        resize=resize,
        interpolation=_FILTERS[int(processor.get("resample") or 2)],
        channels=getattr(config, "num_channels", 3) or 3,
        value_range="0..1" if rescaled else "0..255",
        mean=tuple(processor["image_mean"]) if normalized else (),
        std=tuple(processor["image_std"]) if normalized else (),
    )


def _sizes(processor: dict[str, Any], config: Any, options: TorchOptions) -> tuple[Any, Any]:
    """Input size and resize; transformers has a dialect for each family."""
    given = dict(processor.get("size") or {})
    crop = dict(processor.get("crop_size") or {}) if processor.get("do_center_crop") else {}
    cropped = (crop["height"], crop["width"]) if crop.keys() >= {"height", "width"} else None
    if not processor.get("do_resize", True):
        side = getattr(config, "image_size", None)
        return cropped or ((side, side) if isinstance(side, int) else None), None
    short = given.get("shortest_edge")
    if given.keys() >= {"height", "width"}:
        exact = (given["height"], given["width"])
        return cropped or exact, exact
    if short and not given.get("longest_edge"):
        if cropped is not None:
            return cropped, short
        if (share := processor.get("crop_pct")) is not None:  # ConvNeXT's: no cropping from 384
            return (short, short), (int(short / share) if short < 384 else (short, short))
    if "input_size" in options:
        return None, None
    raise ModelError(
        f"the preprocessing of this model is not supported: its image processor resizes to {given}; "
        "give input_size= and resize="
    )


def _plain(value: Any) -> Any:
    """What JSON knows of a configuration; texts of what it does not."""
    if isinstance(value, dict):
        return {str(key): _plain(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inside) for inside in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)

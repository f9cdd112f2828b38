"""Image classifiers of transformers, by folder or name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from beaufort._core.optional import require
from beaufort.models.network import Network
from beaufort.models.options import TorchOptions
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError
from beaufort.models.torch import from_module

_IGNORED = ("transformers_version", "_name_or_path", "dtype", "torch_dtype", "id2label", "label2id")
"""Entries of a configuration that change no prediction."""

_FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""Interpolations by their number in Pillow."""


def load(text: str, **options: Unpack[TorchOptions]) -> Network:
    """Return an image classifier of transformers, with the preprocessing of its image processor.

    Code that comes with a model is not run.

    Args:
        text: a folder written by `save_pretrained`, or a name on the hub.
        **options: see `TorchOptions`; the configuration provides the classes.
    """
    transformers = require("transformers", "transformers", what="transformers models")
    how = {"local_files_only": Path(text).is_dir(), "trust_remote_code": False}
    try:
        module = transformers.AutoModelForImageClassification.from_pretrained(text, **how).float()
        processor = transformers.AutoImageProcessor.from_pretrained(text, **how)
    except (OSError, ValueError) as error:
        message = " ".join(str(error).split())
        unknown = "Unrecognized configuration class" in message
        hint = f"; for a vision-language model, write chat:transformers:{text}" if unknown else ""
        raise ModelError(
            f"transformers cannot load an image classifier from {text!r}: {message:.300}{hint}"
        ) from None
    if options.get("classes") is None:
        labels = module.config.id2label
        options["classes"] = [str(labels[index]) for index in range(module.config.num_labels)]
    config = {key: value for key, value in module.config.to_diff_dict().items() if key not in _IGNORED}
    return from_module(
        module,
        default_name=Path(text).name,
        source=f"transformers:{text}",
        base=_preprocessing(processor.to_dict(), module.config, options),
        details={"architecture": f"transformers:{type(module).__name__}", "config": _as_json(config)},
        **options,
    )


def _preprocessing(processor: dict[str, Any], config: Any, options: TorchOptions) -> Preprocessing:
    size, resize = _sizes(processor, config, options)
    rescaled = processor.get("do_rescale", True)
    factor = processor.get("rescale_factor", 1 / 255)
    if (rescaled and abs(factor * 255 - 1) > 1e-6) or processor.get("rescale_offset"):
        raise ModelError(
            f"an image processor that rescales values by {factor} or adds an offset is not supported; load "
            "the model with python:package.module:factory"
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
    """Return input size and resize, which each family of transformers writes in its own way."""
    size = dict(processor.get("size") or {})
    crop = dict(processor.get("crop_size") or {}) if processor.get("do_center_crop") else {}
    cropped = (crop["height"], crop["width"]) if crop.keys() >= {"height", "width"} else None
    if not processor.get("do_resize", True):
        side = getattr(config, "image_size", None)
        return cropped or ((side, side) if isinstance(side, int) else None), None
    if size.keys() >= {"height", "width"}:
        exact = (size["height"], size["width"])
        return cropped or exact, exact
    short = size.get("shortest_edge")
    if short and not size.get("longest_edge"):
        if cropped is not None:
            return cropped, short
        if (fraction := processor.get("crop_pct")) is not None:  # ConvNeXt: no crop from 384 pixels
            return (short, short), (int(short / fraction) if short < 384 else (short, short))
    if "input_size" in options:
        return None, None
    raise ModelError(f"an image processor that resizes to {size} is not supported; pass input_size=, resize=")


def _as_json(value: Any) -> Any:
    """Return a configuration as JSON values, with other objects as strings."""
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)

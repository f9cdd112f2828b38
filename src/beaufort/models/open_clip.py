"""Zero-shot classification by open_clip: class names and templates make the classifier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.optional import require
from beaufort._core.registry import unknown_message
from beaufort.models.network import Network
from beaufort.models.options import TorchOptions, class_list, text_lines
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError, ModelFileError
from beaufort.models.torch import choose_device, from_module, use_threads

PLAIN = ("a photo of a {}.",)


def load(
    text: str,
    *,
    templates: str | Path | Sequence[str] = PLAIN,
    pretrained: bool = True,
    **options: Unpack[TorchOptions],
) -> Network:
    """A zero-shot classifier: `architecture/weights`, both as open_clip names them.

    For each class the name is put into every template, and the mean of the texts' directions is its
    direction; the logits are the scaled cosines between it and the image's, as in CLIP's paper.

    Args:
        text: `ViT-B-32/laion2b_s34b_b79k` say; the weights may be a file.
        templates: texts with `{}` for the class name, or a text file of them; `openai` takes the 80 and
            `simple` the 7 that open_clip has for ImageNet.
        pretrained: False leaves random weights and needs none in the text.
        **options: see `TorchOptions`; classes `imagenet-1k` are called as open_clip calls them.
    """
    library = require("open_clip", "open_clip", what="open_clip models")
    architecture, _, weights = text.partition("/")
    _check_names(library, architecture, weights, pretrained)
    names, label_space = _class_names(library, options.get("classes"), options.get("label_space"))
    prompts = _templates(library, templates)
    use_threads(options.get("threads"))
    where = choose_device(options.get("device", "auto"))
    try:
        clip = library.create_model(
            architecture, pretrained=weights if pretrained else None, device=where, weights_only=True
        ).eval()
    except (RuntimeError, OSError, ValueError) as error:
        raise ModelError(f"open_clip cannot load {text!r}: {' '.join(str(error).split()):.300}") from None
    directions = library.build_zero_shot_classifier(
        clip,
        library.get_tokenizer(architecture),
        classnames=list(names),
        templates=list(prompts),
        device=where,
    )
    options.update({"classes": names, "label_space": label_space, "device": where})
    return from_module(
        clip,
        run=lambda images: clip.logit_scale.exp() * clip.encode_image(images, normalize=True) @ directions,
        default_name=text.replace("/", "."),
        source=f"open_clip:{text}",
        base=_preprocessing(library.get_model_preprocess_cfg(clip)),
        details={
            "architecture": f"open_clip:{architecture}",
            "class_names": list(names),
            "templates": list(prompts),
        },
        **options,
    )


def _check_names(library: Any, architecture: str, weights: str, pretrained: bool) -> None:
    known = library.list_models()
    if architecture not in known:
        raise UnknownNameError(unknown_message("architecture of open_clip", architecture, known))
    if not pretrained:
        return
    tags = library.list_pretrained_tags_by_model(architecture)
    if not weights:
        raise OptionError(
            f"open_clip:{architecture} needs weights; write open_clip:{architecture}/weights, with a file or "
            f"one of {', '.join(tags) or 'none published'}"
        )
    if weights in tags or Path(weights).is_file():
        return
    if "/" in weights or Path(weights).suffix in (".pt", ".pth", ".bin", ".safetensors"):
        raise ModelFileError(f"{weights}, the weights of open_clip:{architecture}, is not a file")
    raise UnknownNameError(unknown_message(f"name of weights for {architecture}", weights, tags))


def _class_names(library: Any, classes: Any, label_space: str | None) -> tuple[tuple[str, ...], str | None]:
    if classes == "imagenet-1k":
        return tuple(library.IMAGENET_CLASSNAMES), label_space or "imagenet-1k"
    _, names = class_list(classes)
    if names is None:
        raise OptionError(
            "a zero-shot model needs class names: classes=[…], a text file of one a line, or imagenet-1k"
        )
    return names, label_space


def _templates(library: Any, templates: str | Path | Sequence[str]) -> tuple[str, ...]:
    known = {"openai": library.OPENAI_IMAGENET_TEMPLATES, "simple": library.SIMPLE_IMAGENET_TEMPLATES}
    if isinstance(templates, str) and templates in known:
        return tuple(fill("{}") for fill in known[templates])
    if isinstance(templates, str) and "{}" in templates:
        templates = (templates,)
    if isinstance(templates, str | Path):
        templates = text_lines("templates", templates)
    if not templates or not all(isinstance(one, str) and one.count("{}") == 1 for one in templates):
        raise OptionError(
            f"each of templates must contain {{}} once, for the class name, got {templates!r:.80}"
        )
    return tuple(templates)


def _preprocessing(config: dict[str, Any]) -> Preprocessing:
    size = config["size"]
    sides = (size, size) if isinstance(size, int) else tuple(size)
    mode = config.get("resize_mode", "shortest")
    if mode == "longest" or (mode == "shortest" and sides[0] != sides[1]):
        raise ModelError(
            f"the preprocessing of this model is not supported: resize mode {mode!r} of open_clip at {sides}"
        )
    return Preprocessing(
        size=sides,
        resize=sides if mode == "squash" else sides[0],
        interpolation="bilinear" if config.get("interpolation") == "bilinear" else "bicubic",
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
    )

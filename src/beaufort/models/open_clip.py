"""Zero-shot classification with open_clip, from class names and templates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.optional import require
from beaufort._core.registry import listed
from beaufort._core.validation import validate_choice
from beaufort.models.network import Network
from beaufort.models.options import TorchOptions, class_list, text_lines
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError, ModelFileError
from beaufort.models.torch import choose_device, from_module, use_threads


def load(
    text: str,
    *,
    templates: str | Path | Sequence[str] = ("a photo of a {}.",),
    pretrained: bool = True,
    **options: Unpack[TorchOptions],
) -> Network:
    """Return a zero-shot classifier: `architecture/weights`, by their names in open_clip.

    The name of each class is inserted into every template, and the embeddings of the texts are averaged; the
    logits are the scaled cosines between them and the embedding of the image, as in CLIP's paper.

    Args:
        text: such as `ViT-B-32/laion2b_s34b_b79k`; the weights may be a file.
        templates: texts with `{}` for the class name, or a text file of them; `openai` uses the 80 and
            `simple` the 7 that open_clip has for ImageNet.
        pretrained: False initializes the weights randomly.
        **options: see `TorchOptions`; classes `imagenet-1k` uses the names of open_clip.
    """
    opened = _open(text, templates, options, pretrained=pretrained)
    clip, embeddings = opened.clip, opened.texts
    options.update({"classes": opened.names, "device": opened.device})
    return from_module(
        clip,
        run=lambda images: clip.logit_scale.exp() * clip.encode_image(images, normalize=True) @ embeddings,
        default_name=text.replace("/", "."),
        source=f"open_clip:{text}",
        base=_preprocessing(opened.library.get_model_preprocess_cfg(clip)),
        details={
            "architecture": f"open_clip:{opened.architecture}",
            "class_names": list(opened.names),
            "templates": list(opened.prompts),
        },
        **options,
    )


def load_embedder(
    text: str,
    *,
    templates: str | Path | Sequence[str] = ("a photo of a {}.",),
    pretrained: bool = True,
    **options: Unpack[TorchOptions],
) -> tuple[Network, NDArray[np.float32]]:
    """Return a network from images to embeddings of length 1, and the embeddings of classes, one per row.

    The arguments are those of `load`.
    """
    opened = _open(text, templates, options, pretrained=pretrained)
    clip = opened.clip
    options.update({"classes": None, "device": opened.device})
    network = from_module(
        clip,
        run=lambda images: clip.encode_image(images, normalize=True),
        default_name=text.replace("/", "."),
        source=f"open_clip:{text}",
        base=_preprocessing(opened.library.get_model_preprocess_cfg(clip)),
        details={"architecture": f"open_clip:{opened.architecture}", "embeds": True},
        **options,
    )
    return network, np.ascontiguousarray(opened.texts.float().cpu().numpy().T)


class _Opened(NamedTuple):
    """A model of open_clip with the embeddings of its classes."""

    library: Any
    clip: Any
    texts: Any
    """A column for each class."""
    architecture: str
    names: tuple[str, ...]
    prompts: tuple[str, ...]
    device: Any


def _open(
    text: str, templates: str | Path | Sequence[str], options: TorchOptions, *, pretrained: bool
) -> _Opened:
    library = require("open_clip", "open_clip", what="open_clip models")
    architecture, _, weights = text.partition("/")
    validate_choice("architecture of open_clip", architecture, library.list_models())
    if pretrained:
        _check_weights(weights, library.list_pretrained_tags_by_model(architecture), architecture)
    if options.get("classes") == "imagenet-1k":
        label_space = options.get("label_space") or "imagenet-1k"
        options.update({"classes": tuple(library.IMAGENET_CLASSNAMES), "label_space": label_space})
    _, names = class_list(options.get("classes"))
    if names is None:
        raise OptionError("open_clip models require class names: classes=imagenet-1k, a list or a text file")
    prompts = _templates(library, templates)
    use_threads(options.get("threads"))
    device = choose_device(options.get("device", "auto"))
    try:
        clip = library.create_model(
            architecture, pretrained=weights if pretrained else None, device=device, weights_only=True
        ).eval()
    except (RuntimeError, OSError, ValueError) as error:
        raise ModelError(f"open_clip cannot load {text!r}: {' '.join(str(error).split()):.300}") from None
    texts = library.build_zero_shot_classifier(
        clip,
        library.get_tokenizer(architecture),
        classnames=list(names),
        templates=list(prompts),
        device=device,
    )
    return _Opened(library, clip, texts, architecture, names, prompts, device)


def _check_weights(weights: str, tags: list[str], architecture: str) -> None:
    if weights in tags or (weights and Path(weights).is_file()):
        return
    if not weights:
        raise OptionError(f"missing weights in open_clip:{architecture}/weights; published: {listed(tags)}")
    if "/" in weights or Path(weights).suffix in (".pt", ".pth", ".bin", ".safetensors"):
        raise ModelFileError(f"weights of open_clip:{architecture} not found: {weights}")
    validate_choice(f"weights of {architecture}", weights, tags)


def _templates(library: Any, templates: str | Path | Sequence[str]) -> tuple[str, ...]:
    known = {"openai": library.OPENAI_IMAGENET_TEMPLATES, "simple": library.SIMPLE_IMAGENET_TEMPLATES}
    if isinstance(templates, str) and templates in known:
        return tuple(fill("{}") for fill in known[templates])
    if isinstance(templates, str) and "{}" in templates:
        templates = (templates,)
    if isinstance(templates, str | Path):
        templates = text_lines("templates", templates)
    if not templates or not all(isinstance(text, str) and text.count("{}") == 1 for text in templates):
        raise OptionError(f"each template must contain {{}} once, for the class name, got {templates!r:.80}")
    return tuple(templates)


def _preprocessing(config: dict[str, Any]) -> Preprocessing:
    size = config["size"]
    sides = (size, size) if isinstance(size, int) else tuple(size)
    mode = config.get("resize_mode", "shortest")
    if mode == "longest" or (mode == "shortest" and sides[0] != sides[1]):
        raise ModelError(f"resize mode {mode!r} of open_clip is not supported at {sides}")
    return Preprocessing(
        size=sides,
        resize=sides if mode == "squash" else sides[0],
        interpolation="bilinear" if config.get("interpolation") == "bilinear" else "bicubic",
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
    )

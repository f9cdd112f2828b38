"""Trained models as files: a folder with weights and facts, found by name and evaluated at once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.optional import require
from beaufort._core.registry import unknown_message
from beaufort.models.network import Network
from beaufort.models.options import PreprocessingOptions
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.torch import from_module
from beaufort.training.checkpoint import TrainingFileError, read_weights
from beaufort.training.recipe import REQUIRED, Recipe, no_start

FACTS, WEIGHTS, STATE, NETWORK = "training.json", "model.safetensors", "state.safetensors", "model.onnx"
"""The facts, the weights, what an unfinished training needs to go on, and the ONNX file if there is one."""


def trained_folder() -> Path:
    """Where trained models are kept by name: `BEAUFORT_TRAINED`, or the folder `trained` here."""
    return Path(os.environ.get("BEAUFORT_TRAINED", "trained"))


def find_trained(name: str) -> Path:
    """The folder of a trained model: a path, or a name in `trained_folder()`, with or without `trained:`."""
    name = name.removeprefix("trained:")
    for folder in (Path(name), trained_folder() / name):
        if (folder / FACTS).is_file():
            return folder
        if (folder / STATE).is_file():
            raise UnknownNameError(
                f"{name!r} is not a trained model yet: {folder} has a training that is not finished, and the "
                "command that began it goes on with it"
            )
    if name == REQUIRED:
        raise no_start()
    there = sorted(path.parent.name for path in trained_folder().glob(f"*/{FACTS}"))
    if not there:
        raise UnknownNameError(
            f"{name!r} is not a trained model: no folder with {FACTS}, and {trained_folder()} has none; "
            "`beaufort train` makes one"
        )
    raise UnknownNameError(unknown_message("trained model", name, there))


def read_facts(folder: Path) -> dict[str, Any]:
    """What is known about a trained model."""
    path = folder / FACTS
    try:
        facts = json.loads(path.read_bytes())
    except (OSError, RecursionError, ValueError) as error:
        raise TrainingFileError(f"{path} cannot be read as JSON ({error})") from None
    good = (
        isinstance(facts, dict)
        and "seed" in facts
        and isinstance(facts.get("recipe"), dict)
        and isinstance(facts.get("classes"), list)
        and isinstance(facts.get("shape"), list)
        and [*map(type, facts["shape"])] == [int] * 3
    )
    if not good:
        raise TrainingFileError(
            f"{path} was not written by a training run: it must have recipe, seed, classes and shape"
        )
    found: dict[str, Any] = facts
    return found


def load_trained(folder: Path | str, *, arch: str | None = None) -> tuple[Any, dict[str, Any]]:
    """The torch module of a trained model, for evaluation, and its facts.

    Args:
        folder: the folder, or a name in the folder of trained models.
        arch: `python:package.module:factory` of a network that is not Beaufort's own. What the folder says is
            not followed, because a file could run any program so; it has to be the same.
    """
    from beaufort.training.architectures import build

    require("torch", "training", what="trained models")
    place = find_trained(str(folder))
    facts = read_facts(place)
    recipe = Recipe.from_dict(facts["recipe"])
    if (recipe.architecture.startswith("python:") or arch is not None) and arch != recipe.architecture:
        raise OptionError(
            f"arch must name the architecture of {place}, {recipe.architecture!r:.80}, got {arch!r:.80}: "
            "code is run only if you name it yourself"
        )
    module = build(recipe.architecture, recipe.architecture_options, classes=len(facts["classes"]))
    read_weights(place / WEIGHTS, module)
    return module.eval(), facts


def load(
    text: str,
    *,
    arch: str | None = None,
    name: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    max_batch: int | None = None,
    **changes: Unpack[PreprocessingOptions],
) -> Network:
    """A trained model, ready for evaluation.

    Args:
        text: its folder, or its name in the folder of trained models.
        arch: `python:package.module:factory`, if the network is one of your own.
        name: what tables call it; the folder's name if not given.
        device: `cpu`, `cuda`, `cuda:1`, or `auto`.
        threads: of torch, in the whole process; left alone if not given.
        max_batch: the most images to run at once.
        **changes: what is to be different about the preprocessing.
    """
    module, facts = load_trained(text, arch=arch)
    folder = find_trained(text)
    channels, height, width = facts["shape"]
    base = Preprocessing(size=(height, width), resize=(height, width), channels=channels)
    network = from_module(
        module,
        default_name=folder.name or folder.resolve().name,
        name=name,
        source=f"trained:{text}",
        base=base,
        classes=list(facts["classes"]),
        details={"architecture": facts["recipe"]["architecture"]},
        device=device,
        threads=threads,
        max_batch=max_batch,
        **changes,
    )
    return replace(network, spec=replace(network.spec, trained_behind=_front_of(facts["recipe"])))


def _front_of(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """The image filter that images were behind in a training; empty if there was none."""
    options = recipe.get("intervention_options", {}) if recipe.get("intervention") == "front" else {}
    front = options.get("front")
    texts = [front] if isinstance(front, str) else front
    return tuple(map(str, texts)) if isinstance(texts, list) else ()

"""Trained models: directories with weights and facts, found by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.files import read_json
from beaufort._core.optional import require
from beaufort._core.registry import unknown_message
from beaufort.models.network import Network
from beaufort.models.options import PreprocessingOptions
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.torch import from_module
from beaufort.training.checkpoint import TrainingFileError, read_weights
from beaufort.training.recipe import Recipe, with_current_names

FACTS, WEIGHTS, STATE, NETWORK = "training.json", "model.safetensors", "state.safetensors", "model.onnx"
"""Files of a training run: facts, weights, checkpoint of an unfinished run, ONNX file."""


def trained_folder() -> Path:
    """Return the directory of trained models: `BEAUFORT_TRAINED`, or `trained` in the working directory."""
    return Path(os.environ.get("BEAUFORT_TRAINED", "trained"))


def find_trained(name: str) -> Path:
    """Return the directory of a trained model, by path or name, with or without `trained:`."""
    name = name.removeprefix("trained:")
    for folder in (Path(name), trained_folder() / name):
        if (folder / FACTS).is_file():
            return folder
        if (folder / STATE).is_file():
            raise UnknownNameError(
                f"the training run in {folder} is not finished; repeat the command that started it to resume"
            )
    there = sorted(path.parent.name for path in trained_folder().glob(f"*/{FACTS}"))
    if not there:
        raise UnknownNameError(
            f"trained model not found: {name!r} (none in {trained_folder()}); `beaufort train` creates one"
        )
    raise UnknownNameError(unknown_message("trained model", name, there))


def read_facts(folder: Path) -> dict[str, Any]:
    """Return the facts about a trained model."""
    path = folder / FACTS
    facts: dict[str, Any] = read_json(path, TrainingFileError)
    good = (
        isinstance(facts, dict)
        and "seed" in facts
        and isinstance(facts.get("recipe"), dict)
        and isinstance(facts.get("classes"), list)
        and isinstance(facts.get("shape"), list)
        and [*map(type, facts["shape"])] == [int] * 3
    )
    if not good:
        raise TrainingFileError(f"{path} must contain recipe, seed, classes and shape of a training run")
    return facts


def load_trained(folder: Path | str, *, arch: str | None = None) -> tuple[Any, dict[str, Any]]:
    """Return the torch module of a trained model, in evaluation mode, and its facts.

    Args:
        folder: directory or name of the model.
        arch: `python:package.module:factory`, if the network is not one of Beaufort's. It must be passed by
            the caller, because a file must not decide which code runs.
    """
    from beaufort.training.architectures import build

    require("torch", "training", what="trained models")
    place = find_trained(str(folder))
    facts = read_facts(place)
    recipe = Recipe.from_dict(facts["recipe"])
    if (recipe.architecture.startswith("python:") or arch is not None) and arch != recipe.architecture:
        raise OptionError(
            f"arch must be {recipe.architecture!r:.80} for {place}, got {arch!r:.80}; Python "
            "code is only run if arch names it"
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
    """Return a trained model, ready for evaluation.

    Args:
        text: directory or name of the model.
        arch: `python:package.module:factory`, if the network is your own.
        name: name in tables; that of the directory by default.
        device: `cpu`, `cuda`, `cuda:1`, or `auto`.
        threads: threads of torch in the whole process; unchanged by default.
        max_batch: maximum number of images per batch.
        **changes: changes of the preprocessing.
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
    return replace(network, spec=replace(network.spec, trained_behind=_filters_of(facts["recipe"])))


def _filters_of(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the image filters that were used in training."""
    recipe = with_current_names(recipe)
    options = recipe.get("intervention_options", {}) if recipe.get("intervention") == "image_filter" else {}
    found = options.get("image_filter")
    filters = [found] if isinstance(found, str) else found
    return tuple(map(str, filters)) if isinstance(filters, list) else ()

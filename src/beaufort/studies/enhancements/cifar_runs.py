"""The tasks on CIFAR-10: train an arm, then evaluate it on the test images under every condition."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from beaufort.corruptions import corruptions
from beaufort.models.filters import load_filter
from beaufort.studies.enhancements.enhancement_arms import (
    CLEAN,
    EnhancementSettings,
    TrainingArm,
    conditions,
    training_arms,
)
from beaufort.studies.failed_runs import task_result
from beaufort.studies.predictions import (
    CorruptedImages,
    StudyPredictions,
    correct_only,
    logits,
    read_test_images,
    write_predictions,
)
from beaufort.training import Training, TrainingData, open_training_data, train

_TEMPORARY = "training"
"""Directory of networks that no arm starts from or tests, until they are evaluated."""


@lru_cache(maxsize=1)
def test_images(settings: EnhancementSettings) -> CorruptedImages:
    """Return the test images, corrupted once for all arms, as by `beaufort run --suite cifar10-c`."""
    clean, labels, ids = read_test_images(settings.test, device=settings.device, limit=settings.limit)
    images = {CLEAN: clean}
    for condition in conditions(settings)[1:]:
        name, _, severity = condition.partition("@")
        images[condition] = corruptions[name](clean, int(severity), ids=ids, seed=0, scale="cifar")
    return CorruptedImages(images, labels)


@lru_cache(maxsize=1)
def _source(settings: EnhancementSettings) -> TrainingData:
    return open_training_data(settings.train, limit=48 if settings.rehearse else None)


def make_arm(
    folder: Path, deadline: float | None, *, settings: EnhancementSettings, arm: str, seed: int
) -> bool | str:
    """Train an arm, unless it tests another's network, and evaluate it."""
    arms = _arms(settings)
    one = arms[arm]
    made = _train(arms[one.tests or arm], arms, folder, settings, seed, deadline)
    if made is None:
        return False
    path = folder / "cifar" / f"{arm}-seed{seed}.npz"
    write_predictions(path, _predict(made.model, settings, one.image_filter, made.facts))
    if made.folder.parent.name == _TEMPORARY:
        shutil.rmtree(made.folder)
    result = True if one.tests else task_result(made.facts)
    del made
    _free_memory()
    return result


def make_start(
    folder: Path, deadline: float | None, *, settings: EnhancementSettings, arm: str, seed: int
) -> bool | str:
    """Train a network that arms start from or test, and keep it."""
    arms = _arms(settings)
    made = _train(arms[arm], arms, folder, settings, seed, deadline)
    result = False if made is None else task_result(made.facts)
    del made
    _free_memory()
    return result


def _arms(settings: EnhancementSettings) -> dict[str, TrainingArm]:
    return {arm.name: arm for group in training_arms(settings).values() for arm in group}


def _train(
    arm: TrainingArm,
    arms: Mapping[str, TrainingArm],
    folder: Path,
    settings: EnhancementSettings,
    seed: int,
    deadline: float | None,
) -> Training | None:
    """Return an arm's network, trained with the one that it starts from if missing; None if time is up."""
    start = ""
    if arm.start:
        before = _train(arms[arm.start], arms, folder, settings, seed, deadline)
        if before is None:
            return None
        start = str(before.folder)
    kept = any(arm.name in {one.start, one.tests} for one in arms.values())
    made = train(
        arm.configured(settings, start),
        _source(settings),
        output=folder / ("models" if kept else _TEMPORARY) / f"{arm.name}-seed{seed}",
        seed=seed,
        device=settings.device,
        deadline=deadline,
    )
    return made if made.finished else None


def _free_memory() -> None:
    """Free the GPU memory of a training run, which a recorded step keeps, for other processes."""
    gc.collect()
    torch.cuda.empty_cache()


def _predict(
    model: nn.Module, settings: EnhancementSettings, image_filter: str, facts: dict[str, Any]
) -> StudyPredictions:
    """Return the predictions under all conditions, behind an image filter if one is named."""
    test = test_images(settings)
    model = model.eval().to(test.labels.device)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    rows = []
    for views in _views(settings, image_filter):
        each = [logits(model, view, half=True).softmax(1) for view in views]
        rows.append(torch.stack(each).mean(0).argmax(1) == test.labels)
    correct = torch.stack(rows).to(torch.uint8).cpu().numpy()  # a third of the size of the classes
    kept = ("recipe", "seed", "losses", "constant_loss", "seconds", "device", "parameters")
    about: dict[str, Any] = {key: facts[key] for key in kept if key in facts}
    return correct_only(test.images, correct, {**about, "filter": image_filter})


def _views(settings: EnhancementSettings, image_filter: str) -> Iterator[list[Tensor]]:
    """Yield the views of the test images under each condition."""
    if image_filter and any(step.makes_views for step in load_filter(image_filter).steps):
        for images in test_images(settings).images.values():
            yield _apply(images, image_filter)
    else:
        filtered = _filtered(settings, image_filter) if image_filter else test_images(settings).images
        yield from ([images] for images in filtered.values())


@lru_cache(maxsize=1)
def _filtered(settings: EnhancementSettings, image_filter: str) -> dict[str, Tensor]:
    """Return the filtered test images; most filters run on the CPU, so it is done once for all networks."""
    return {name: _apply(images, image_filter)[0] for name, images in test_images(settings).images.items()}


def _apply(images: Tensor, image_filter: str) -> list[Tensor]:
    height, width = images.shape[2:]
    return load_filter(image_filter).apply_tensors(images, (height, width))

"""The tasks on CIFAR-10: train an arm, then ask it about the test images under every condition."""

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
from beaufort.studies.enhancements.enhancement_settings import CLEAN, EnhancementSettings, conditions
from beaufort.studies.enhancements.training_arms import TrainingArm, training_arms
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

_WORK = "training"
"""The folder of networks that no arm starts from or tests, until they are asked."""


@lru_cache(maxsize=1)
def test_images(settings: EnhancementSettings) -> CorruptedImages:
    """The test images, corrupted once for all arms, as `beaufort run --suite cifar10-c` does it."""
    clean, labels, ids = read_test_images(settings.test, device=settings.device, limit=settings.limit)
    images = {CLEAN: clean}
    for condition in conditions(settings)[1:]:
        name, _, severity = condition.partition("@")
        images[condition] = corruptions[name](clean, int(severity), ids=ids, seed=0, scale="cifar")
    return CorruptedImages(images, labels)


@lru_cache(maxsize=1)
def _source(settings: EnhancementSettings) -> TrainingData:
    return open_training_data(settings.train, limit=settings.train_limit)


def make_arm(
    folder: Path, deadline: float | None, *, settings: EnhancementSettings, arm: str, seed: int
) -> bool | str:
    """Train an arm, unless it tests another's network, and ask it."""
    known = _arms(settings)
    one = known[arm]
    made = _trained(known[one.tests] if one.tests else one, known, folder, settings, seed, deadline)
    if made is None:
        return False
    path = folder / "cifar" / f"{arm}-seed{seed}.npz"
    write_predictions(path, _predict(made.model, settings, one.image_filter, made.facts))
    if made.folder.parent.name == _WORK:
        shutil.rmtree(made.folder)
    found = True if one.tests else task_result(made.facts)
    del made
    _give_back()
    return found


def make_start(
    folder: Path, deadline: float | None, *, settings: EnhancementSettings, arm: str, seed: int
) -> bool | str:
    """Train a network that arms start from or test, and keep it."""
    known = _arms(settings)
    made = _trained(known[arm], known, folder, settings, seed, deadline)
    found = False if made is None else task_result(made.facts)
    del made
    _give_back()
    return found


def _arms(settings: EnhancementSettings) -> dict[str, TrainingArm]:
    return {arm.name: arm for group in training_arms(settings).values() for arm in group}


def _trained(
    arm: TrainingArm,
    known: Mapping[str, TrainingArm],
    folder: Path,
    settings: EnhancementSettings,
    seed: int,
    deadline: float | None,
) -> Training | None:
    """An arm's network, trained unless it is there, as is the one that it starts from; None if time is up."""
    start = ""
    if arm.start:
        before = _trained(known[arm.start], known, folder, settings, seed, deadline)
        if before is None:
            return None
        start = str(before.folder)
    kept = any(arm.name in {one.start, one.tests} for one in known.values())
    made = train(
        arm.made(settings, start),
        _source(settings),
        output=folder / ("models" if kept else _WORK) / f"{arm.name}-seed{seed}",
        seed=seed,
        device=settings.device,
        deadline=deadline,
    )
    return made if made.finished else None


def _give_back() -> None:
    """Return what a training held of the GPU, which other jobs need, and which a recorded step keeps."""
    gc.collect()
    torch.cuda.empty_cache()


def _predict(
    model: nn.Module, settings: EnhancementSettings, front: str, facts: dict[str, Any]
) -> StudyPredictions:
    """A network's answers under all conditions, behind a front end if one is named."""
    test = test_images(settings)
    model = model.eval().to(test.labels.device)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    rows = []
    for views in _views(settings, front):
        each = [logits(model, view, half=True).softmax(1) for view in views]
        rows.append(torch.stack(each).mean(0).argmax(1) == test.labels)
    right = torch.stack(rows).to(torch.uint8).cpu().numpy()  # a third of the size of the classes
    kept = ("recipe", "seed", "losses", "constant_loss", "seconds", "device", "parameters")
    about: dict[str, Any] = {key: facts[key] for key in kept if key in facts}
    return correct_only(test.images, right, {**about, "front": front})


def _views(settings: EnhancementSettings, front: str) -> Iterator[list[Tensor]]:
    """What a network sees of the test images under each condition."""
    if front and any(step.makes_views for step in load_filter(front).steps):
        for images in test_images(settings).images.values():
            yield _shown(images, front)
    else:
        for images in (_filtered(settings, front) if front else test_images(settings).images).values():
            yield [images]


@lru_cache(maxsize=1)
def _filtered(settings: EnhancementSettings, front: str) -> dict[str, Tensor]:
    """The test images behind a filter; most work on the processor, so it is done once for all networks."""
    return {name: _shown(images, front)[0] for name, images in test_images(settings).images.items()}


def _shown(images: Tensor, front: str) -> list[Tensor]:
    height, width = images.shape[2:]
    return load_filter(front).apply_tensors(images, (height, width))

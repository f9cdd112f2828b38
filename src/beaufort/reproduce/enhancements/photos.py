"""Front ends on photos of ImageNet: what a network answers behind each, through `evaluate` and its store."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beaufort.reproduce.answers import StudyAnswers, write_answers
from beaufort.reproduce.enhancements.settings import CLEAN, EnhancementSettings

if TYPE_CHECKING:
    from beaufort.suites import Suite

__all__ = ["PHOTO_ARMS", "answer_photos", "photo_suite"]


def _nlm_arms() -> dict[str, tuple[str, int]]:
    plain = {f"nlm-h{h:g}": (f"nlm:h={h}", 224) for h in (0.4, 0.8, 1.2)}
    gated = {f"{name}-above0.03": (f"{front},above=0.03", side) for name, (front, side) in plain.items()}
    return {**plain, **gated}


PHOTO_ARMS: Mapping[str, tuple[str, int]] = {
    "plain": ("", 224),
    **_nlm_arms(),
    "clahe": ("clahe:clip=2,tiles=8", 224),
    "equalize": ("equalize", 224),
    "stretch": ("stretch", 224),
    "middle-crop": ("multi-crop:grid=1,mirror=no,side=256", 256),
    "ten-crop": ("ten-crop:side=256", 256),
}
"""The front end of each arm, and the side of the pictures that are corrupted, in pixels."""


def photo_suite(settings: EnhancementSettings, side: int) -> Suite:
    """ImageNet-C with its constants for 224 pixels on squares of some side, and the extra corruptions."""
    from beaufort.suites import get_suite

    known = get_suite("imagenet-c")
    return replace(
        known,
        name=f"imagenet-c-{side}",
        title=f"ImageNet-C and the extra corruptions at {side} pixels",
        corruptions=(*settings.corruptions, *settings.extra),
        severities=settings.severities,
        prepare=tuple(step._replace(side=side) if step.action == "crop" else step for step in known.prepare),
        baseline=None,
        metrics=("mean_accuracy",),
    )


def answer_photos(
    folder: Path, deadline: float | None, *, settings: Mapping[str, Any], network: str, arm: str
) -> bool:
    """Show all photos under all conditions to a network behind a front end; the store keeps every answer."""
    from beaufort.evaluation import LazyModel, evaluate  # trainings do without a store

    chosen = EnhancementSettings(**settings)
    front, side = PHOTO_ARMS[arm]
    options = {"classes": "imagenet-1k", "label_space": "imagenet-1k", **({"front": front} if front else {})}
    start = time.monotonic()
    found = evaluate(
        LazyModel(f"onnx:{chosen.network_files[network]}", options),
        photo_suite(chosen, side),
        chosen.photos,
        folder / "store",
        limit=chosen.limit,
    )
    answers = found.scores(calibration=False).results.answers(found.results[0].model)
    names = tuple(
        f"{one.corruption}@{one.severity}" if one.corruption else CLEAN for one in answers.conditions
    )
    facts = {"network": network, "arm": arm, "front": front, "seconds": round(time.monotonic() - start, 1)}
    right = answers.correct.astype(np.uint8)
    path = folder / "photos" / network / f"{arm}.npz"
    write_answers(path, StudyAnswers(names, right, np.ones(right.shape[1], np.uint8), facts))
    return True

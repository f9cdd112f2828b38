"""The tasks of the study: a training and its answers about the icons that were held out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from beaufort.models.torch import choose_device
from beaufort.studies.answers import StudyAnswers, write_answers
from beaufort.studies.asking import logits
from beaufort.studies.failed import task_result
from beaufort.studies.icons_50.icons import SplitIcons, split_icons, style_names
from beaufort.studies.icons_50.settings import (
    ARMS,
    NETWORKS,
    OTHERS,
    SPLITS,
    STYLES_BY,
    VARIANTS,
    IconSettings,
    style_split,
)
from beaufort.studies.tasks import Task
from beaufort.training import train

_LONG = "shake26-96d"
"""The one whose 500 epochs take longer than all others together."""
_TABLE = ("style", "subtype", "subtype-released", "traditional")
PARTS = (*SPLITS, "shake", "shake-subtype", "shake-500", "others", "styles")
"""What can be asked for alone, also together with names of networks."""
_KEPT = (
    "recipe",
    "seed",
    "steps",
    "losses",
    "constant_loss",
    "seconds",
    "cpu_seconds",
    "device",
    "torch",
    "parameters",
    "replayed",
)
_BATCH = 500


def plan(settings: IconSettings, only: Iterable[str] = ()) -> list[list[Task]]:
    """What there is to do, in phases: the table, the question about Shake-Shake, its 500 epochs, the rest."""
    chosen = tuple(only)
    parts = {part for part in chosen if part in PARTS} or {*_TABLE, *PARTS} - {"traditional-released"}
    networks = {part for part in chosen if part in VARIANTS} or set(VARIANTS)
    planned: set[tuple[str, str]] = set()
    phases = []
    for phase in _phases(settings, parts):
        pairs = [pair for pair in dict.fromkeys(phase) if pair[0] in networks and pair not in planned]
        planned.update(pairs)
        phases.append([_task(*pair, seed, settings) for seed in range(settings.seeds) for pair in pairs])
    return phases


def _phases(settings: IconSettings, parts: set[str]) -> list[list[tuple[str, str]]]:
    """Networks and splits. What takes longest comes first, so that processes end together."""
    quick = [name for name in ("resnext29", "msdnet", "densenet40", "resnet20") if name != _LONG]
    assert {*quick, _LONG} == set(NETWORKS)
    table = [(name, split) for name in quick for split in SPLITS if split in parts]
    arms = [(name, "style") for name in reversed(ARMS)] * ("shake" in parts)
    arms += [(name, "subtype") for name in reversed(ARMS)] * ("shake-subtype" in parts)
    long = [(_LONG, split) for split in _TABLE[:3]] * ("shake-500" in parts)
    others = [(name, split) for name in OTHERS for split in ("style", "subtype")] * ("others" in parts)
    if "styles" in parts:
        splits = [style_split(vendor) for vendor in style_names(settings)]
        others += [(name, split) for name in STYLES_BY for split in splits]
    return [table, arms, long, others]


def _task(name: str, split: str, seed: int, settings: IconSettings) -> Task:
    held_out = SPLITS.get(split) or f"{split.removeprefix('style-')}'s style"
    return Task(
        f"{VARIANTS[name].title} without {held_out}, seed {seed}",
        f"answers/{name}@{split}-seed{seed}.npz",
        "beaufort.studies.icons_50.work:make_model",
        {"settings": asdict(settings), "name": name, "split": split, "seed": seed},
    )


def make_model(
    folder: Path, deadline: float | None, *, settings: Mapping[str, Any], name: str, split: str, seed: int
) -> bool | str:
    """Train a network without the icons that are held out, and ask it about them."""
    chosen = IconSettings(**settings)
    icons = split_icons(chosen, split)
    label = f"{name}@{split}-seed{seed}"
    made = train(
        chosen.recipe(name),
        icons.train,
        output=folder / "models" / label,
        seed=seed,
        device=chosen.device,
        deadline=deadline,
    )
    if not made.finished:
        return False
    facts = {key: made.facts[key] for key in _KEPT if key in made.facts}
    write_answers(folder / "answers" / f"{label}.npz", ask(made.model, icons, split, facts, chosen.device))
    return task_result(made.facts)


def ask(
    model: torch.nn.Module, icons: SplitIcons, split: str, facts: dict[str, Any], device: str
) -> StudyAnswers:
    """A network's answers about held-out icons, in float32; with what tables need to know about these."""
    where = choose_device(device)
    model = model.to(where).eval()
    images, labels = icons.test.images.to(where), icons.test.labels.cpu().numpy()
    found = logits(model, images, batch=_BATCH).argmax(1)
    facts = {
        **facts,
        "classes": list(icons.train.classes),
        "trained_classes": sorted(set(icons.train.labels.tolist())),
        "train_icons": len(icons.train),
        "ids": list(icons.ids),
    }
    return StudyAnswers((split,), found.to(torch.uint8).cpu().numpy()[None], labels.astype("uint8"), facts)

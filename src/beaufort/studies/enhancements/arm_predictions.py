"""All predictions that a folder of the study has, as what each image adds to the numbers of an arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.text import counted
from beaufort.studies.enhancements.enhancement_settings import (
    EnhancementSettings,
    PhotoPass,
    condition_file,
    photo_conditions,
)
from beaufort.studies.enhancements.mce_statistics import ArmMetrics, alexnet, metrics_of_arm, normalizer_of
from beaufort.studies.enhancements.training_arms import BASE, CONTROL
from beaufort.studies.failed_runs import CheckedRuns, check_runs, ending_facts
from beaufort.studies.predictions import (
    StudyPredictions,
    correct_only,
    predictions_by_seed,
    read_predictions,
)

CIFAR = "CIFAR-10"
_PHOTOS: Mapping[PhotoPass, str] = {
    "fronts": "photos",
    "crops": "photos in crops",
    "styles": "stylized photos",
}
"""How the page calls what is shown in each pass."""


@dataclass(frozen=True)
class StudyArms:
    """All answers that a folder has, as shares."""

    photos: Mapping[str, Mapping[str, ArmMetrics]]
    """By network and arm."""
    cifar: Mapping[str, ArmMetrics]
    settings: EnhancementSettings
    images: Mapping[str, int]
    styles: Mapping[str, StudyPredictions] = field(default_factory=dict)
    """Of stylized photos by network."""
    runs: CheckedRuns = field(default_factory=CheckedRuns)
    left_out: Sequence[str] = ()
    """Answers on CIFAR-10 that are not used, because those of an earlier seed are missing."""


def load_arms(folder: Path, settings: EnhancementSettings) -> StudyArms:
    """What is there; nothing is made."""
    photos: dict[str, dict[str, ArmMetrics]] = {}
    images: dict[str, int] = {}
    passes: tuple[PhotoPass, ...] = ("fronts", "crops")
    for which in passes:
        for network, by_arm in photo_predictions(folder, which, settings).items():
            for arm, answers in by_arm.items():
                images[_PHOTOS[which]] = answers.correct.shape[1]
                found = metrics_of_arm([answers], alexnet(settings), settings)
                photos.setdefault(network, {})[arm] = found
    styled = photo_predictions(folder, "styles", settings)
    styles = {network: by_arm["plain"] for network, by_arm in styled.items()}
    if styles:
        images[_PHOTOS["styles"]] = next(iter(styles.values())).correct.shape[1]
    counts = [images[_PHOTOS[which]] for which in ("fronts", "styles") if _PHOTOS[which] in images]
    if len(set(counts)) > 1:
        raise OptionError(
            f"photos/fronts has predictions for {counts[0]} photos and photos/styles for {counts[1]}; delete "
            "the folder that is out of date"
        )
    every = predictions_by_seed(folder / "cifar")
    trained = {name: kept for name, found in every.items() if (kept := _without_gap(found))}
    left_out = [
        f"{name}, seed {one.facts['seed']}"
        for name, found in every.items()
        for one in found[len(trained.get(name, ())) :]
    ]
    cifar: dict[str, ArmMetrics] = {}
    if BASE in trained:
        base = normalizer_of(trained[BASE][0])
        files = {
            f"cifar/{arm}-seed{n}.npz": one for arm, some in trained.items() for n, one in enumerate(some)
        }
        _check_alike(f"cifar/{BASE}-seed0.npz", files)
        cifar = {name: metrics_of_arm(answers, base, settings) for name, answers in trained.items()}
        images[CIFAR] = trained[BASE][0].correct.shape[1]
    return StudyArms(photos, cifar, settings, images, styles, _check_trained(trained), left_out)


def photo_predictions(
    folder: Path, which: PhotoPass, settings: EnhancementSettings
) -> dict[str, dict[str, StudyPredictions]]:
    """Return the predictions of a pass by network and arm; empty until all of its conditions are there."""
    names = photo_conditions(settings, which)
    files = [condition_file(which, name) for name in names]
    if not all((folder / file).is_file() for file in files):
        return {}
    each = {file: read_predictions(folder / file) for file in files}
    _check_alike(files[0], each)
    found: dict[str, dict[str, StudyPredictions]] = {}
    for key in each[files[0]].conditions:
        network, _, arm = key.partition("/")
        correct = np.stack([one.row(key) for one in each.values()]).astype(np.uint8)
        found.setdefault(network, {})[arm] = correct_only(names, correct, {})
    return found


def _check_alike(file: str, each: Mapping[str, StudyPredictions]) -> None:
    """Check that files have predictions for the conditions and images of one, or nothing can be paired."""
    first = each[file]
    for other, one in each.items():
        if one.conditions != first.conditions or one.correct.shape != first.correct.shape:
            sizes = [
                f"{counted(rows, 'row')} of {counted(images, 'image')}"
                for rows, images in (one.correct.shape, first.correct.shape)
            ]
            raise OptionError(
                f"{other} has {sizes[0]} and {file} has {sizes[1]}, which must be the same ones; delete the "
                "file that is out of date"
            )


def _check_trained(trained: Mapping[str, Sequence[StudyPredictions]]) -> CheckedRuns:
    """What the losses of all arms say that were trained, and which numbers each is part of."""
    line = "distances from the line of ResNets"
    named = {
        BASE: "its rows, all differences to it, arms that start from it or test it, "
        f"{line}; of seed 0, every mCE",
        "resnet56": f"its rows, arms that start from it, {line}",
        "resnet110": f"its rows, {line}",
        **dict.fromkeys((CONTROL, "msdnet", "shake26-no-shake"), "its rows and all differences to it"),
    }
    return check_runs(
        (arm, named.get(arm, "its rows"), ending_facts(one))
        for arm, some in trained.items()
        for one in some
        if one.facts.get("recipe", {}).get("name") == arm  # others test what another arm trained
    )


def _without_gap(answers: Sequence[StudyPredictions]) -> list[StudyPredictions]:
    """Those of seeds 0, 1, … up to the first that is missing, so that arms are compared seed by seed."""
    return [one for place, one in enumerate(answers) if one.facts.get("seed", place) == place]

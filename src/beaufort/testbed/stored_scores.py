"""The accuracies of one stored model, under the names that a reference grid has for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import unknown
from beaufort.corruptions import get_corruption_names
from beaufort.models import Preprocessing
from beaufort.results import Results, open_parts
from beaufort.suites.conditions import Condition
from beaufort.testbed.grid import Grid
from beaufort.testbed.scores import Score

_ATTACKS: Mapping[str, str] = {
    "testbed-pgd-linf@0.5/255": "pgd.linf.eps0.5",
    "testbed-pgd-linf@2/255": "pgd.linf.eps2",
    "testbed-pgd-l2@0.1": "pgd.l2.eps0.1",
    "testbed-pgd-l2@0.5": "pgd.l2.eps0.5",
}
"""What the testbed calls its attacks."""

_PARTS: Mapping[str, str] = {
    "imagenet-val": "val",
    "imagenet-val-imagenet-a": "val-on-imagenet-a-classes",
    "imagenet-val-imagenet-r": "val-on-imagenet-r-classes",
    "imagenet-val-objectnet": "val-on-objectnet-classes",
    "imagenet-val-objectnet-125": "val-on-objectnet-classes",
    "imagenet-val-vid-robust": "val-on-vid-robust-classes",
    "imagenet-val-ytbb-robust": "val-on-ytbb-robust-classes",
    "imagenetv2-matched-frequency": "imagenetv2",
    "imagenetv2-threshold-0.7": "imagenetv2-threshold-0.7-format-val",
    "imagenetv2-top-images": "imagenetv2-top-images-format-val",
    "stylized-imagenet": "stylized_imagenet",
    "vid-robust-anchors": "vid-robust",
    "ytbb-robust-anchors": "ytbb-robust",
}
"""What it calls the data sets of the suites of natural shifts, where that is not their name."""

_CLASSES = 1000
"""Of ImageNet, which the grids of the testbed and of timm are about."""

_OBJECTNET = {"paper": "imagenet-val-objectnet-125", "latest": "imagenet-val-objectnet"}
"""The clean counterpart of ObjectNet that each grid has: 125 classes, or 113 since 2021."""


def scores_of_store(store: Path | str, model: str | None, reference: Grid) -> tuple[Score, ...]:
    """The accuracies of the store's last run, or of one of its models.

    Corruptions made by Beaufort count as the testbed's in-memory ones, stored pictures as those on disk; for
    a leaderboard they are averaged. A data set of a suite of several is the setting of its name.
    """
    parts = open_parts(store)
    models = [name for name in parts[0].models if all(name in part.models for part in parts)]
    if model is None and len(models) != 1:
        raise OptionError(f"{store} has {len(models)} models; name one with --model")
    name = models[0] if model is None else model
    if name not in models:
        raise UnknownNameError(unknown(f"model of {store}", name, dict.fromkeys(models)))
    if reference.name.startswith("robustbench-"):
        return tuple(score for part in parts for score in _of_leaderboard(part, name, reference))
    return tuple(score for part in parts for score in _of_testbed(part, name, reference))


def _of_testbed(results: Results, model: str, reference: Grid) -> Iterator[Score]:
    part = results.suite.name
    other = part in _OBJECTNET.values() and part != _OBJECTNET.get(reference.name, part)
    answers = results.predictions(model)
    for condition, share in zip(answers.conditions, answers.correct.mean(axis=1), strict=True):
        yield Score(
            _setting(results, condition),
            100 * float(share),
            len(answers),
            _convention(results, model),
            _preprocessing(results, model, condition),
            (f"the reference's classes are those of {_OBJECTNET[reference.name]}",)
            if other
            else _other_classes(results, model),
        )


def _other_classes(results: Results, model: str) -> tuple[str, ...]:
    """What is told of a model that does not choose among ImageNet's classes, where labels are its outputs."""
    space = results.space(model)
    outputs = space.count or results.outputs or len(results.classes)
    if not space.identity or outputs in {0, _CLASSES}:
        return ()
    return (
        f"the reference chooses among ImageNet's {_CLASSES:,} classes, this model among {outputs:,} of "
        f"{results.dataset}: the two are not comparable",
    )


def _of_leaderboard(results: Results, model: str, reference: Grid) -> Iterator[Score]:
    answers = results.predictions(model)
    shares = 100 * answers.correct.mean(axis=1)
    clean = np.array([condition.clean for condition in answers.conditions])
    for share in shares[clean]:
        yield Score("clean", float(share), len(answers))
    if not clean.all():
        yield Score(
            "corruptions",
            float(shares[~clean].mean()),
            len(answers),
            differences=tuple(_other_mean(results, reference)),
        )


def _other_mean(results: Results, reference: Grid) -> Iterator[str]:
    """Why a mean is not the leaderboard's: other corruptions, another data set, other pictures."""
    suite, dataset = results.suite, reference.name.removeprefix("robustbench-")
    listed = set(suite.corruptions) == set(get_corruption_names("common")) and not suite.shifts
    if not listed or set(suite.severities) != {1, 2, 3, 4, 5}:
        yield f"the reference's mean is over the benchmark's 15 corruptions × 5, this one over {suite.name}'s"
    if suite.dataset.partition("-")[0] != dataset:
        yield f"the reference's images are of {dataset}, these of {results.dataset} ({suite.name})"
    if not results.stored:
        yield "the reference shows the published files, these pictures were corrupted in memory"


def _setting(results: Results, condition: Condition) -> str:
    if condition.clean:
        return _PARTS.get(results.suite.name, results.suite.name) if results.part_of else "val"
    if condition.corruption in get_corruption_names("all"):
        severity = "" if condition.severity is None else f".{condition.severity}"
        stored = "on-disk" if results.stored else "in-memory"
        return f"imagenet-c.{condition.corruption}{severity}_{stored}"
    return _ATTACKS.get(condition.done, condition.done)


def _convention(results: Results, model: str) -> str:
    space = results.space(model)
    return "all" if space.identity or space.convention == "all" else "subset"


def _preprocessing(results: Results, model: str, condition: Condition) -> str:
    """`own` if pictures were brought to size as the model does it itself before anything was done to them."""
    steps = results.suite.prepare
    plain = condition.clean or condition.needs_model or results.stored
    if not steps and plain:
        return "own"
    own = Preprocessing.from_dict(results.cells[model][condition].model["preprocessing"])
    wanted = [f"resize {own.resize}", f"crop {own.size[0] if own.size else None}"]
    if results.stored or [str(step) for step in steps] == wanted:
        return "own"
    return ", ".join(map(str, steps)) or "before the model's own resize and crop"

"""The accuracies of one model of your own, from a CSV file or a store, under the names of a grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_unique
from beaufort.corruptions import get_corruption_names
from beaufort.testbed.grid import Grid, Setting
from beaufort.testbed.grid_files import number, read_rows

if TYPE_CHECKING:
    from beaufort.results import Results
    from beaufort.suites.conditions import Condition

CONVENTIONS = ("all", "subset")


@dataclass(frozen=True)
class Score:
    """One accuracy."""

    setting: str
    accuracy: float
    """In percent."""
    images: int | None = None
    """Images that it rests on; the reference's number is taken if None."""
    convention: str | None = None
    """`all` classes could be answered, or only those of the data set's `subset`; not told if None."""
    preprocessing: str | None = None
    """`own`: the model's own resize and crop; anything else is told apart from the reference's."""
    differences: tuple[str, ...] = ()
    """What else is known to differ from the reference's, each a clause."""


def read_scores(path: Path | str) -> tuple[Score, ...]:
    """Scores from a CSV file: `setting`, `accuracy`, and, if there, `n`, `convention`, `preprocessing`."""
    rows = read_rows(Path(path), ["setting", "accuracy"])
    made = []
    for row in rows:
        name = row["setting"]
        accuracy = number(row["accuracy"], f"the accuracy on {name!r} in {path}")
        if not 0 <= accuracy <= 100:
            given = row["accuracy"] or "none"
            raise OptionError(f"the accuracy on {name!r} must be a percentage from 0 to 100, got {given}")
        images = number(row.get("n", ""), f"n of {name!r} in {path}")
        if not np.isnan(images) and (images < 1 or images != int(images)):
            raise OptionError(f"n of {name!r} must be a positive integer, got {row['n']}")
        convention = row.get("convention") or None
        if convention not in {None, *CONVENTIONS}:
            raise OptionError(
                f"the convention of {name!r} must be {' or '.join(CONVENTIONS)}, got {convention!r}"
            )
        size = None if np.isnan(images) else int(images)
        made.append(Score(name, accuracy, size, convention, row.get("preprocessing") or None))
    validate_unique(f"settings in {path}", [one.setting for one in made])
    return tuple(made)


def own_settings(grid: Grid, scores: Sequence[Score]) -> list[tuple[Setting, Score]]:
    """The scores that a grid has a setting for, with that setting; at least one must."""
    found = []
    for score in scores:
        with suppress(UnknownNameError):
            found.append((grid.setting(score.setting), score))
    if not found:
        named = ", ".join(one.setting for one in scores) or "none"
        raise OptionError(f"scores must have a setting of the grid {grid.name}, got {named}")
    return found


# Scores of a stored model

_ATTACKS: Mapping[str, str] = {
    "testbed-pgd-linf@0.5/255": "pgd.linf.eps0.5",
    "testbed-pgd-linf@2/255": "pgd.linf.eps2",
    "testbed-pgd-l2@0.1": "pgd.l2.eps0.1",
    "testbed-pgd-l2@0.5": "pgd.l2.eps0.5",
}
"""What the testbed calls its attacks."""

PART_SETTINGS: Mapping[str, str] = {
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
    from beaufort.results import open_parts

    parts = open_parts(store)
    models = [name for name in parts[0].models if all(name in part.models for part in parts)]
    if model is None and len(models) != 1:
        raise OptionError(f"{store} has {len(models)} models; name one with --model")
    name = models[0] if model is None else model
    if name not in models:
        raise UnknownNameError(unknown_message(f"model of {store}", name, models))
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
        return PART_SETTINGS.get(results.suite.name, results.suite.name) if results.part_of else "val"
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
    from beaufort.models import Preprocessing

    steps = results.suite.prepare
    plain = condition.clean or condition.needs_model or results.stored
    if not steps and plain:
        return "own"
    own = Preprocessing.from_dict(results.cells[model][condition].model["preprocessing"])
    wanted = [f"resize {own.resize}", f"crop {own.size[0] if own.size else None}"]
    if results.stored or [str(step) for step in steps] == wanted:
        return "own"
    return ", ".join(map(str, steps)) or "before the model's own resize and crop"

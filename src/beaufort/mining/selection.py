"""Which images are kept: those that surrogate models get wrong; and whether failures transfer."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.files import write_output
from beaufort._core.text import csv_text
from beaufort._core.validation import validate_unique
from beaufort.data import Dataset, load_dataset
from beaufort.metrics.stats import Estimate, clopper_pearson
from beaufort.mining.generation import PLAN, GeneratedImage, read_generated
from beaufort.mining.plan import MiningError, read_plan
from beaufort.mining.predictions import SetPredictions

_COLUMNS = ("file", "sha256", "category", "kept", "failures", "surrogates")


@dataclass(frozen=True)
class SelectedImage:
    """An image, the predictions of surrogates for it, and whether it is kept."""

    file: str
    sha256: str
    category: str
    kept: bool
    predicted: dict[str, str]
    """The category that each surrogate predicted."""

    @property
    def failures(self) -> int:
        """Number of surrogates that did not predict the intended category."""
        return sum(one != self.category for one in self.predicted.values())


@dataclass(frozen=True, eq=False)
class MinedSelection:
    """The images that surrogates fail on, among all generated ones."""

    predictions: SetPredictions
    surrogates: tuple[str, ...]
    needed: int
    """Surrogates that must fail on an image that is kept."""
    images: tuple[GeneratedImage, ...]
    """In the order of the predictions."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """For each image whether enough surrogates fail on it."""
        rows = [self.predictions.row(name) for name in self.surrogates]
        enough: NDArray[np.bool_] = self.predictions.failed[rows].sum(axis=0) >= self.needed
        return enough

    @property
    def others(self) -> tuple[str, ...]:
        """Models that are no surrogates."""
        return tuple(name for name in self.predictions.models if name not in self.surrogates)

    @property
    def rule(self) -> str:
        """The rule in words."""
        many = len(self.surrogates)
        if many == 1:
            return "the surrogate fails"
        these = f"all {many}" if self.needed == many else f"at least {self.needed} of {many}"
        return f"{these} surrogates fail"


def open_generated(folder: Path) -> tuple[Dataset, tuple[GeneratedImage, ...]]:
    """Open the images of a folder as a dataset, with how each was generated, in its order."""
    images = {one.path.relative_to(folder).as_posix(): one for one in read_generated(folder)}
    if not images:
        raise MiningError(f"{folder} has no images; generate them with `beaufort mine generate`")
    planned = {item.file: None for item in read_plan(folder / PLAN)}
    if lost := [file for file in planned if file not in images]:
        raise MiningError(
            f"{len(lost)} of {len(planned)} planned images are missing in {folder} (first: {lost[0]}); "
            "generate them with `beaufort mine generate`"
        )
    if extra := [file for file in images if file not in planned]:
        raise MiningError(
            f"{len(extra)} images in {folder} are not in its {PLAN} (first: {extra[0]}); restore "
            "the plan, or move them away"
        )
    data = load_dataset(f"mined:{folder}")
    if strange := [one for one in data.ids if one not in images]:
        raise MiningError(f"{strange[0]} in {folder} is not a generated PNG; move it away")
    return data, tuple(images[one] for one in data.ids)


def parse_rule(rule: str, surrogates: int) -> int:
    """Return how many surrogates must fail: `all`, or `K-of-N` with N the number of surrogates.

    >>> parse_rule("all", 4), parse_rule("3-of-4", 4)
    (4, 3)
    """
    if surrogates < 1:
        raise MiningError("at least one surrogate is required")
    if rule == "all":
        return surrogates
    match = re.fullmatch(r"(\d+)-of-(\d+)", rule)
    if match is None or int(match[2]) != surrogates or not 1 <= int(match[1]) <= surrogates:
        raise MiningError(
            f"rule must be all, or K-of-{surrogates} with K from 1 to {surrogates}, got {rule!r}"
        )
    return int(match[1])


def select(
    predictions: SetPredictions,
    images: Sequence[GeneratedImage],
    surrogates: Sequence[str],
    *,
    rule: str = "all",
) -> MinedSelection:
    """Keep the images that surrogates get wrong.

    Args:
        predictions: of the surrogates, and of other models, for all images.
        images: the images, in the order of the predictions.
        surrogates: names of models.
        rule: `all` of the surrogates, or `K-of-N` of them, must not predict the intended category.
    """
    for name in validate_unique("surrogates", surrogates):
        predictions.row(name)
    return MinedSelection(predictions, tuple(surrogates), parse_rule(rule, len(surrogates)), tuple(images))


def write_selection(selection: MinedSelection, path: Path) -> None:
    """Write a row for each image: predictions of surrogates, and whether it is kept."""
    predictions = selection.predictions
    rows: list[list[Any]] = []
    for place, (image, kept) in enumerate(zip(selection.images, selection.kept.tolist(), strict=True)):
        predicted = {
            name: predictions.name_of(int(predictions.predicted[predictions.row(name), place]))
            for name in selection.surrogates
        }
        digest = sha256(image.path.read_bytes()).hexdigest()
        one = SelectedImage(image.item.file, digest, image.item.category, kept, predicted)
        text = json.dumps(predicted, ensure_ascii=False)
        rows.append([one.file, digest, one.category, int(kept), one.failures, text])
    write_output(path, csv_text(_COLUMNS, rows).encode())


def read_selection(path: Path) -> tuple[SelectedImage, ...]:
    """Read the rows that `beaufort mine select` wrote."""
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
        found = tuple(map(_selected, rows))
        validate_unique("files", [one.file for one in found])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, csv.Error) as error:
        reason = (
            f"no column {error}" if isinstance(error, KeyError) else getattr(error, "strerror", 0) or error
        )
        raise MiningError(f"cannot read {path} as a selection of `beaufort mine select`: {reason}") from None
    if not found:
        raise MiningError(f"{path} contains no images")
    if other := next((one for one in found if one.predicted.keys() != found[0].predicted.keys()), None):
        raise MiningError(f"{path} has predictions of different surrogates for {other.file}")
    return found


def _selected(row: Mapping[str, str]) -> SelectedImage:
    file, digest, category, kept, surrogates = (row[name] for name in _COLUMNS if name != "failures")
    predicted = json.loads(surrogates)
    if (
        not isinstance(predicted, dict)
        or not predicted
        or not all(isinstance(one, str) for one in predicted.values())
    ):
        raise ValueError(f"surrogates must be JSON with a category for each, got {surrogates:.60}")
    if kept not in ("0", "1"):
        raise ValueError(f"kept must be 0 or 1, got {kept!r}")
    if "\0" in file:
        raise ValueError(f"invalid file name {file!r}")
    return SelectedImage(file, digest, category, kept == "1", predicted)


def write_review_list(selection: MinedSelection, path: Path, *, controls: int = 0, seed: int = 0) -> int:
    """Write the kept images as a list for `beaufort review create`, and return how many there are.

    Args:
        selection: what was kept.
        path: the list, in the folder of the images.
        controls: number of hidden controls of each sort, from images that every surrogate gets right: as
            they are, which is clearly valid, and with the name of another category, which is clearly wrong.
        seed: seed of the choice of controls.
    """
    rows = [
        [image.item.file, image.item.category, ""]
        for image, kept in zip(selection.images, selection.kept.tolist(), strict=True)
        if kept
    ]
    if not rows:
        raise MiningError(f"there is no image to review: on none of them {selection.rule}")
    judged = len(rows)
    if controls:
        rows += _controls(selection, controls, random.Random(seed))
    write_output(path, csv_text(("file", "category", "role"), rows).encode())
    return judged


def _controls(selection: MinedSelection, controls: int, rng: random.Random) -> list[list[str]]:
    surrogates = [selection.predictions.row(name) for name in selection.surrogates]
    easy = np.flatnonzero(~selection.predictions.failed[surrogates].any(axis=0)).tolist()
    if len(easy) < 2 * controls or len(selection.predictions.categories) < 2:
        raise MiningError(
            f"controls must be at most {len(easy) // 2}, half of the images that every surrogate gets right, "
            f"and need two categories, got {controls}"
        )
    rows = []
    for number, place in enumerate(rng.sample(easy, 2 * controls)):
        item = selection.images[place].item
        if number < controls:
            rows.append([item.file, item.category, "control-valid"])
        else:
            wrong = [name for name in selection.predictions.categories if name != item.category]
            rows.append([item.file, rng.choice(wrong), "control-invalid"])
    return rows


# Transfer


@dataclass(frozen=True)
class ModelHardness:
    """Accuracy of one model on all images, and on those that were kept."""

    model: str
    surrogate: bool
    unfiltered: Estimate
    kept: Estimate | None
    """None if nothing was kept. It is low by construction for a surrogate, and no measure of it."""


@dataclass(frozen=True)
class TransferCell:
    """The failures of one model that another one has too."""

    source: str
    target: str
    fraction: Estimate | None
    """None if the source fails on no image."""


@dataclass(frozen=True)
class NuisanceFailures:
    """How often one model fails with one nuisance."""

    kind: str
    nuisance: str
    """Empty for all of its kind."""
    model: str
    failures: Estimate


def hardness(selection: MinedSelection) -> tuple[ModelHardness, ...]:
    """Return every model's accuracy on all and on the kept images; surrogates are marked, and come last."""
    kept, found = selection.kept, []
    for name in (*selection.others, *selection.surrogates):
        right = ~selection.predictions.failed[selection.predictions.row(name)]
        on_kept = _fraction(right[kept]) if kept.any() else None
        found.append(ModelHardness(name, name in selection.surrogates, _fraction(right), on_kept))
    return tuple(found)


def transfer_matrix(selection: MinedSelection) -> tuple[TransferCell, ...]:
    """Return for every two models the fraction of the first one's failures that the second has too."""
    predictions = selection.predictions
    return tuple(
        TransferCell(source, target, _fraction(theirs[own]) if own.any() else None)
        for source, own in zip(predictions.models, predictions.failed, strict=True)
        for target, theirs in zip(predictions.models, predictions.failed, strict=True)
        if target != source
    )


def nuisance_failures(
    predictions: SetPredictions, nuisances: Sequence[tuple[str, str]]
) -> tuple[NuisanceFailures, ...]:
    """Return how often each model fails, for each kind and each nuisance.

    Args:
        predictions: of all models.
        nuisances: the kind and the nuisance of each image; empty where it is unknown.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, (kind, nuisance) in enumerate(nuisances):
        groups.setdefault((kind, ""), []).append(place)
        if nuisance:
            groups.setdefault((kind, nuisance), []).append(place)
    return tuple(
        NuisanceFailures(kind, nuisance, model, _fraction(failed[places]))
        for (kind, nuisance), places in sorted(groups.items())
        for model, failed in zip(predictions.models, predictions.failed, strict=True)
    )


def _fraction(yes: NDArray[np.bool_]) -> Estimate:
    return clopper_pearson(int(yes.sum()), len(yes))

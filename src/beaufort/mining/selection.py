"""Selection of images that surrogate models get wrong, and transfer of failures between models."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.files import read_csv, write_output
from beaufort._core.text import csv_text
from beaufort._core.validation import validate_unique
from beaufort.data import Dataset, load_dataset
from beaufort.metrics.stats import Estimate, clopper_pearson
from beaufort.mining.generation import PLAN, GeneratedImage, read_generated, read_omitted
from beaufort.mining.names import display_name
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
    """Category predicted by each surrogate."""

    @property
    def failures(self) -> int:
        """Number of surrogates with a wrong prediction."""
        return sum(one != self.category for one in self.predicted.values())


@dataclass(frozen=True, eq=False)
class MinedSelection:
    """Generated images, and which of them are kept because surrogates fail."""

    predictions: SetPredictions
    surrogates: tuple[str, ...]
    needed: int
    """Number of surrogates that must fail on a kept image."""
    images: tuple[GeneratedImage, ...]
    """In the order of the predictions."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Whether enough surrogates fail on each image."""
        rows = [self.predictions.row(name) for name in self.surrogates]
        enough: NDArray[np.bool_] = self.predictions.failed[rows].sum(axis=0) >= self.needed
        return enough

    @property
    def others(self) -> tuple[str, ...]:
        """Models that are not surrogates."""
        return tuple(name for name in self.predictions.models if name not in self.surrogates)

    @property
    def rule(self) -> str:
        """Description of the rule."""
        many = len(self.surrogates)
        if many == 1:
            return "the surrogate fails"
        these = f"all {many}" if self.needed == many else f"at least {self.needed} of {many}"
        return f"{these} surrogates fail"


def open_generated(folder: Path) -> tuple[Dataset, tuple[GeneratedImage, ...]]:
    """Open a folder of generated images as a dataset, with the facts of each image in the same order."""
    images = {one.path.relative_to(folder).as_posix(): one for one in read_generated(folder)}
    if not images:
        raise MiningError(f"{folder} contains no images; generate them with `beaufort mine generate`")
    planned = {item.file: item.id for item in read_plan(folder / PLAN)}
    omitted = read_omitted(folder)
    if missing := [file for file, id in planned.items() if file not in images and id not in omitted]:
        raise MiningError(
            f"{len(missing)} of {len(planned)} planned images are missing in {folder} (first: {missing[0]}); "
            "generate them with `beaufort mine generate`"
        )
    if extra := [file for file in images if file not in planned]:
        raise MiningError(
            f"{len(extra)} images in {folder} are not in its {PLAN} (first: {extra[0]}); restore "
            "the plan, or move them away"
        )
    data = load_dataset(f"mined:{folder}")
    if foreign := [one for one in data.ids if one not in images]:
        raise MiningError(f"{foreign[0]} in {folder} is not a generated PNG; move it away")
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
        predictions: predictions of the surrogates and perhaps other models.
        images: the images, in the order of the predictions.
        surrogates: names of models.
        rule: how many surrogates must be wrong: `all`, or `K-of-N`.
    """
    for name in validate_unique("surrogates", surrogates):
        predictions.row(name)
    return MinedSelection(predictions, tuple(surrogates), parse_rule(rule, len(surrogates)), tuple(images))


def write_selection(selection: MinedSelection, path: Path) -> None:
    """Write a row for each image: predictions of surrogates, and whether it is kept."""
    rows: list[list[Any]] = []
    for place, (image, kept) in enumerate(zip(selection.images, selection.kept.tolist(), strict=True)):
        predicted = {name: selection.predictions.name(name, place) for name in selection.surrogates}
        digest = sha256(image.path.read_bytes()).hexdigest()
        one = SelectedImage(image.item.file, digest, image.item.category, kept, predicted)
        text = json.dumps(predicted, ensure_ascii=False)
        rows.append([one.file, digest, one.category, int(kept), one.failures, text])
    write_output(path, csv_text(_COLUMNS, rows).encode())


def read_selection(path: Path) -> tuple[SelectedImage, ...]:
    """Read the `selection.csv` of `beaufort mine select`."""
    images: list[SelectedImage] = []
    for line, row in read_csv(path, _COLUMNS, MiningError):
        try:
            predicted = json.loads(row["surrogates"])
        except (ValueError, RecursionError):
            predicted = None
        if (
            not isinstance(predicted, dict)
            or not predicted
            or not set(map(type, predicted.values())) == {str}
        ):
            raise MiningError(f"{path}, line {line}: surrogates must be JSON with a category for each")
        if row["kept"] not in ("0", "1"):
            raise MiningError(f"{path}, line {line}: kept must be 0 or 1, got {row['kept']!r}")
        if "\0" in row["file"]:
            raise MiningError(f"{path}, line {line}: invalid file name {row['file']!r}")
        if images and predicted.keys() != images[0].predicted.keys():
            raise MiningError(f"{path}, line {line}: predictions of different surrogates for {row['file']}")
        images.append(
            SelectedImage(row["file"], row["sha256"], row["category"], row["kept"] == "1", predicted)
        )
    if not images:
        raise MiningError(f"{path} contains no images")
    validate_unique(f"files in {path}", [one.file for one in images], MiningError)
    return tuple(images)


def write_review_list(selection: MinedSelection, path: Path, *, controls: int = 0, seed: int = 0) -> int:
    """Write the kept images as a list for `beaufort review create`, and return how many there are.

    Args:
        selection: the selection.
        path: the list, in the folder of the images.
        controls: number of hidden controls of each kind, from images that every surrogate gets right: valid
            ones, and ones with the name of a dissimilar category, which are invalid.
        seed: seed of the controls.
    """
    rows = [
        [image.item.file, image.item.category, ""]
        for image, kept in zip(selection.images, selection.kept.tolist(), strict=True)
        if kept
    ]
    if not rows:
        raise MiningError(f"there is no image to review; an image is kept if {selection.rule}")
    count = len(rows)
    if controls:
        rows += _controls(selection, controls, random.Random(seed))
    write_output(path, csv_text(("file", "category", "role"), rows).encode())
    return count


def _controls(selection: MinedSelection, controls: int, rng: random.Random) -> list[list[str]]:
    surrogates = [selection.predictions.row(name) for name in selection.surrogates]
    easy = np.flatnonzero(~selection.predictions.failed[surrogates].any(axis=0)).tolist()
    if len(easy) < 2 * controls or len(selection.predictions.categories) < 2:
        raise MiningError(
            f"controls must be at most {len(easy) // 2} (half of the images that every surrogate classifies "
            f"correctly) and require two categories, got {controls}"
        )
    rows, distant = [], _distant_categories(selection.predictions)
    for number, place in enumerate(rng.sample(easy, 2 * controls)):
        item = selection.images[place].item
        if number < controls:
            rows.append([item.file, item.category, "control-valid"])
        else:
            rows.append([item.file, rng.choice(distant[item.category]), "control-invalid"])
    return rows


def _distant_categories(predictions: SetPredictions) -> dict[str, list[str]]:
    """Return the categories that differ most from each: an image of one must not pass for the other.

    Categories are close if models predict one for images of the other, or if it is their best wrong category.
    A word that both names have counts more than any confusion.
    """
    categories = predictions.categories
    confused = np.zeros((len(categories), len(categories)), np.int64)
    for found in (predictions.predicted, predictions.runners_up):
        labels = np.broadcast_to(predictions.labels, found.shape)
        known = (found >= 0) & (found < len(categories))
        np.add.at(confused, (labels[known], found[known]), 1)
    confused += confused.T
    words = [set(display_name(name).split()) for name in categories]
    for first, second in combinations(range(len(categories)), 2):
        if words[first] & words[second]:
            confused[[first, second], [second, first]] += confused.sum() + 1
    np.fill_diagonal(confused, np.iinfo(np.int64).max)
    return {
        name: [other for other, count in zip(categories, row, strict=True) if count == row.min()]
        for name, row in zip(categories, confused, strict=True)
    }


# Transfer


@dataclass(frozen=True)
class ModelHardness:
    """Accuracy of one model on all images, and on those that were kept."""

    model: str
    surrogate: bool
    unfiltered: Estimate
    kept: Estimate | None
    """None if nothing was kept. For a surrogate it is low by construction."""


@dataclass(frozen=True)
class TransferCell:
    """Failures of one model that another one shares."""

    source: str
    target: str
    fraction: Estimate | None
    """None if the source fails on no image."""


@dataclass(frozen=True)
class NuisanceFailures:
    """Fraction of images with a nuisance on which a model fails."""

    kind: str
    nuisance: str
    """Empty for all nuisances of the kind."""
    model: str
    failures: Estimate


def hardness(selection: MinedSelection) -> tuple[ModelHardness, ...]:
    """Return the accuracy of models on all and on kept images; surrogates are marked and last."""
    kept, found = selection.kept, []
    for name in (*selection.others, *selection.surrogates):
        right = ~selection.predictions.failed[selection.predictions.row(name)]
        on_kept = _fraction(right[kept]) if kept.any() else None
        found.append(ModelHardness(name, name in selection.surrogates, _fraction(right), on_kept))
    return tuple(found)


def transfer_matrix(selection: MinedSelection) -> tuple[TransferCell, ...]:
    """Return for every pair of models the fraction of the first one's failures that the second shares."""
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
    """Return the fraction of failures of each model, for each kind and nuisance.

    `nuisances` are the kind and the nuisance of each image, empty if unknown.
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

"""Which images are kept: those that surrogate models get wrong."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.files import write_output
from beaufort._core.text import csv_text
from beaufort.data import Dataset, load_dataset
from beaufort.mining.generation import PLAN, GeneratedImage, read_generated
from beaufort.mining.plan import MiningError, read_plan
from beaufort.mining.verdicts import Verdicts

_COLUMNS = ("file", "sha256", "category", "kept", "failures", "surrogates")


@dataclass(frozen=True)
class SelectedImage:
    """An image, what surrogates said to it, and whether it is kept."""

    file: str
    sha256: str
    category: str
    kept: bool
    said: dict[str, str]
    """The category that each surrogate answered."""


@dataclass(frozen=True, eq=False)
class MinedSelection:
    """The images that surrogates fail on, among all that were made."""

    verdicts: Verdicts
    surrogates: tuple[str, ...]
    needed: int
    """Surrogates that must fail on an image that is kept."""
    images: tuple[GeneratedImage, ...]
    """In the order of the verdicts."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """For each image whether enough surrogates fail on it."""
        rows = [self.verdicts.row(name) for name in self.surrogates]
        enough: NDArray[np.bool_] = self.verdicts.failed[rows].sum(axis=0) >= self.needed
        return enough

    @property
    def others(self) -> tuple[str, ...]:
        """Models that are no surrogates."""
        return tuple(name for name in self.verdicts.models if name not in self.surrogates)

    @property
    def rule(self) -> str:
        """The rule in words."""
        many = len(self.surrogates)
        if many == 1:
            return "the surrogate fails"
        these = f"all {many}" if self.needed == many else f"at least {self.needed} of {many}"
        return f"{these} surrogates fail"


def open_generated(folder: Path) -> tuple[Dataset, tuple[GeneratedImage, ...]]:
    """The images of a folder as a data set, and how each was made, in its order."""
    images = {one.path.relative_to(folder).as_posix(): one for one in read_generated(folder)}
    if not images:
        raise MiningError(f"{folder} must have images, got none; `beaufort mine generate` makes them")
    planned = {item.file: None for item in read_plan(folder / PLAN)}
    if lost := [file for file in planned if file not in images]:
        raise MiningError(
            f"{folder} must have all {len(planned)} images of its plan, got none for {len(lost)} (first: "
            f"{lost[0]}); `beaufort mine generate` makes them again"
        )
    if extra := [file for file in images if file not in planned]:
        raise MiningError(
            f"every image in {folder} must be in its {PLAN}, got {len(extra)} that are not (first: "
            f"{extra[0]}); restore the plan, or move them away"
        )
    data = load_dataset(f"mined:{folder}")
    if strange := [one for one in data.ids if one not in images]:
        raise MiningError(
            f"every picture in {folder} must be a generated PNG, got {strange[0]}; move it away"
        )
    return data, tuple(images[one] for one in data.ids)


def parse_rule(rule: str, surrogates: int) -> int:
    """How many surrogates must fail: `all`, or `K-of-N` with N the number of surrogates.

    >>> parse_rule("all", 4), parse_rule("3-of-4", 4)
    (4, 3)
    """
    if surrogates < 1:
        raise MiningError("there must be at least one surrogate to choose images, got none")
    if rule == "all":
        return surrogates
    match = re.fullmatch(r"(\d+)-of-(\d+)", rule)
    if match is None or int(match[2]) != surrogates or not 1 <= int(match[1]) <= surrogates:
        raise MiningError(
            f"rule must be all, or K-of-{surrogates} with K from 1 to {surrogates}, got {rule!r}"
        )
    return int(match[1])


def select(
    verdicts: Verdicts, images: Sequence[GeneratedImage], surrogates: Sequence[str], *, rule: str = "all"
) -> MinedSelection:
    """Keep the images that surrogates get wrong.

    Args:
        verdicts: answers of the surrogates, and of other models, to all images.
        images: the images, in the order of the verdicts.
        surrogates: names of models.
        rule: `all` of the surrogates, or `K-of-N` of them, must fail: not answer the intended category.
    """
    if len(set(surrogates)) != len(surrogates):
        raise MiningError(f"a surrogate must be named once, got {', '.join(surrogates)}")
    for name in surrogates:
        verdicts.row(name)
    return MinedSelection(verdicts, tuple(surrogates), parse_rule(rule, len(surrogates)), tuple(images))


def write_selection(selection: MinedSelection, path: Path) -> None:
    """Write a row for each image: what surrogates said, and whether it is kept."""
    verdicts = selection.verdicts
    rows: list[list[Any]] = []
    for place, (image, kept) in enumerate(zip(selection.images, selection.kept.tolist(), strict=True)):
        said = {
            name: verdicts.name_of(int(verdicts.predicted[verdicts.row(name), place]))
            for name in selection.surrogates
        }
        failures = sum(answer != image.item.category for answer in said.values())
        digest = sha256(image.path.read_bytes()).hexdigest()
        told = json.dumps(said, ensure_ascii=False)
        rows.append([image.item.file, digest, image.item.category, int(kept), failures, told])
    write_output(path, csv_text(_COLUMNS, rows).encode())


def read_selection(path: Path) -> tuple[SelectedImage, ...]:
    """The rows that `beaufort mine select` wrote."""
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
        found = tuple(map(_selected, rows))
    except (OSError, ValueError, KeyError, TypeError, RecursionError, csv.Error) as error:
        reason = (
            f"no column {error}" if isinstance(error, KeyError) else getattr(error, "strerror", None) or error
        )
        raise MiningError(
            f"a selection must be a CSV file as `beaufort mine select` writes it, got {path} ({reason})"
        ) from None
    if not found:
        raise MiningError(f"a selection must have at least one image, got none in {path}")
    if len({one.file for one in found}) < len(found):
        twice = next(file for file, count in Counter(one.file for one in found).items() if count > 1)
        raise MiningError(f"a selection must have each image once, got {twice} again in {path}")
    if other := next((one for one in found if one.said.keys() != found[0].said.keys()), None):
        raise MiningError(
            f"a selection must have an answer of the same surrogates to each image, got those of others to "
            f"{other.file} in {path}"
        )
    return found


def _selected(row: Mapping[str, str]) -> SelectedImage:
    file, digest, category, kept, answers = (
        row[name] for name in ("file", "sha256", "category", "kept", "surrogates")
    )
    said = json.loads(answers)
    if not isinstance(said, dict) or not said or not all(isinstance(one, str) for one in said.values()):
        raise ValueError(f"surrogates must be JSON with a category for each, got {answers:.60}")
    if kept not in ("0", "1"):
        raise ValueError(f"kept must be 0 or 1, got {kept!r}")
    if "\0" in file:
        raise ValueError(f"file must be the name of one, got {file!r}")
    return SelectedImage(file, digest, category, kept == "1", said)


def write_review_list(selection: MinedSelection, path: Path, *, controls: int = 0, seed: int = 0) -> int:
    """Write the kept images as a list for `beaufort review create`; gives how many are to be judged.

    Args:
        selection: what was kept.
        path: the list, in the folder of the images.
        controls: so many hidden controls of each sort, from images that every surrogate gets right: as they
            are, which is clearly valid, and under the name of another category, which is clearly wrong.
        seed: of the choice of controls.
    """
    rows = [
        [image.item.file, image.item.category, ""]
        for image, kept in zip(selection.images, selection.kept.tolist(), strict=True)
        if kept
    ]
    if not rows:
        raise MiningError(f"there must be an image to review, got none on which {selection.rule}")
    judged = len(rows)
    if controls:
        rows += _controls(selection, controls, random.Random(seed))
    write_output(path, csv_text(("file", "category", "role"), rows).encode())
    return judged


def _controls(selection: MinedSelection, controls: int, rng: random.Random) -> list[list[str]]:
    surrogates = [selection.verdicts.row(name) for name in selection.surrogates]
    easy = np.flatnonzero(~selection.verdicts.failed[surrogates].any(axis=0)).tolist()
    if len(easy) < 2 * controls or len(selection.verdicts.categories) < 2:
        raise MiningError(
            f"controls must be at most {len(easy) // 2}, half of the images that every surrogate gets right, "
            f"and need two categories, got {controls}"
        )
    chosen = rng.sample(easy, 2 * controls)
    rows = []
    for number, place in enumerate(chosen):
        item = selection.images[place].item
        if number < controls:
            rows.append([item.file, item.category, "control-valid"])
        else:
            wrong = [name for name in selection.verdicts.categories if name != item.category]
            rows.append([item.file, rng.choice(wrong), "control-invalid"])
    return rows

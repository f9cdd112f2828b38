"""Plans of images to generate: CSV files with one row for each image, which can be edited."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from beaufort._core.errors import BeaufortError
from beaufort._core.files import read_csv, write_output
from beaufort._core.text import csv_text
from beaufort._core.validation import validate_choice, validate_count, validate_integer
from beaufort.mining.names import BUILT_IN, KINDS, fill_template

TEMPLATES = {
    "background": "A photo of a {category}, {nuisance} in the background",
    "texture": "A photo of a {category} with a {nuisance} texture",
    "material": "A photo of a {category} made of {nuisance}",
}
"""Prompts of each kind; an article before a field is adapted to its value."""
_OTHER = "A photo of a {category}, {nuisance}"
"""Prompt of other kinds."""


class MiningError(BeaufortError, ValueError):
    """An invalid plan, image, generator or set."""


@dataclass(frozen=True)
class PlanItem:
    """An image to be generated."""

    category: str
    """Intended category, which is the label."""
    kind: str
    """`background`, `texture`, `material`, or a kind of the user's, such as `weather`."""
    nuisance: str
    prompt: str
    seed: int

    @cached_property
    def id(self) -> str:
        """Hash of all fields."""
        return sha256(json.dumps(astuple(self)).encode()).hexdigest()[:20]

    @property
    def file(self) -> str:
        """Relative path of the image."""
        return f"{self.kind}/{self.category}/{self.id}.png"


@dataclass(frozen=True)
class OmittedImage:
    """Stands for an image that a generator made but that cannot be used, such as a blocked one."""

    reason: str


_COLUMNS = tuple(field.name for field in fields(PlanItem))


def make_plan(
    categories: Sequence[str],
    *,
    nuisances: Mapping[str, Sequence[str]] | None = None,
    templates: Mapping[str, str] | None = None,
    each: int = 1,
    sample: int | None = None,
    seed: int = 0,
) -> tuple[PlanItem, ...]:
    """Combine every category with every nuisance.

    Args:
        categories: names, which become labels.
        nuisances: names for each kind; `BUILT_IN` by default.
        templates: prompts with `{category}` and `{nuisance}` by kind; `TEMPLATES` by default.
        each: images for each pair.
        sample: number of pairs to draw; all by default.
        seed: seed of the sample and of the images' seeds, which do not depend on the rest of the plan.

    >>> make_plan(["chair"], nuisances={"material": ["wood"]})[0].prompt
    'A photo of a chair made of wood'
    """
    validate_count("each", each)
    sentences = {**TEMPLATES, **(templates or {})}
    kinds = nuisances or BUILT_IN
    for kind, sentence in sentences.items():
        validate_choice("kind of template", kind, (*KINDS, *kinds))
        if "{category}" not in sentence or "{nuisance}" not in sentence:
            raise MiningError(f"a template must contain {{category}} and {{nuisance}}, got {sentence!r}")
    pairs = [
        (category, kind, nuisance)
        for kind, names in kinds.items()
        for nuisance in names
        for category in categories
    ]
    if sample is not None:
        validate_integer("sample", sample, 1, len(pairs))
        chosen = random.Random(seed).sample(range(len(pairs)), sample)
        pairs = [pairs[i] for i in sorted(chosen)]
    items = []
    for category, kind, nuisance in pairs:
        prompt = fill_template(sentences.get(kind, _OTHER), category, nuisance)
        for number in range(each):
            facts = json.dumps((seed, category, kind, nuisance, number)).encode()
            own_seed = int.from_bytes(sha256(facts).digest()[:4], "big")
            items.append(PlanItem(category, kind, nuisance, prompt, own_seed))
    return validate_plan(items)


def write_plan(items: Sequence[PlanItem], path: Path, *, replace: bool = True) -> None:
    """Write a plan as a CSV file; with `replace=False` a different existing file is an error."""
    content = csv_text(_COLUMNS, map(astuple, items)).encode()
    if not replace and path.is_file() and path.read_bytes() != content:
        raise MiningError(f"{path} already contains a different plan; choose another name, or delete it")
    write_output(path, content)


def read_plan(path: Path) -> tuple[PlanItem, ...]:
    """Read a plan from a CSV file; additional columns are ignored."""
    return validate_plan([item for item, _ in read_rows(path)])


def read_rows(path: Path) -> list[tuple[PlanItem, dict[str, str]]]:
    """Read the items of a CSV file, each with all columns of its row."""
    found = []
    for line, row in read_csv(path, _COLUMNS, MiningError):
        category, kind, nuisance, prompt, seed = (row[name] for name in _COLUMNS)
        try:
            found.append((PlanItem(category, kind, nuisance, prompt, int(seed)), row))
        except ValueError:
            raise MiningError(f"{path}, line {line}: seed must be an integer, got {seed!r}") from None
    return found


def validate_plan(items: Sequence[PlanItem]) -> tuple[PlanItem, ...]:
    """Return items with valid folder names and no duplicates."""
    if not items:
        raise MiningError("the plan is empty")
    seen: set[str] = set()
    for item in items:
        names = {"kind": item.kind, "category": item.category, "nuisance": item.nuisance}
        for name, value in names.items():
            if not value.strip() or value.startswith(".") or set(value) & set("/\\\0\n\r"):
                raise MiningError(f"{name} must be a valid name of a folder, got {value!r}")
        if not 0 <= item.seed < 2**32:
            raise MiningError(f"seed must be from 0 to {2**32 - 1}, got {item.seed}")
        if item.id in seen:
            raise MiningError(f"duplicate row: {item.category} with {item.nuisance} and seed {item.seed}")
        seen.add(item.id)
    return tuple(items)

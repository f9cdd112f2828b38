"""The plan: one row for each image, as a CSV file that people can read, cut and correct."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from beaufort._core.errors import BeaufortError
from beaufort._core.files import write_output
from beaufort._core.text import csv_text
from beaufort.mining.nuisances import BUILT_IN, KINDS, clean_name

TEMPLATES = {
    "background": "A photo of a {category}, {nuisance} in the background",
    "texture": "A photo of a {category} with a {nuisance} texture",
    "material": "A photo of a {category} made of {nuisance}",
}


class MiningError(BeaufortError, ValueError):
    """A plan, an image or a generator that cannot be used as given."""


@dataclass(frozen=True)
class PlanItem:
    """An image to be made."""

    category: str
    """The intended category, which is its label."""
    kind: str
    """background, texture or material."""
    nuisance: str
    prompt: str
    seed: int

    @cached_property
    def id(self) -> str:
        """Its name: a hash of all the rest, so that another row is another image."""
        return sha256(json.dumps(astuple(self)).encode()).hexdigest()[:20]

    @property
    def file(self) -> str:
        """Where its image lies: kind, category, id."""
        return f"{self.kind}/{self.category}/{self.id}.png"


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
    """Every category with every nuisance.

    Args:
        categories: names; each becomes a label.
        nuisances: names for each kind; `BUILT_IN` if not given.
        templates: sentences with `{category}` and `{nuisance}` for kinds; `TEMPLATES` for the others.
        each: images for each pair.
        sample: so many of the pairs, drawn by the seed; all if not given.
        seed: of the sample and of the seeds of images, which do not depend on what else is planned.

    >>> make_plan(["chair"], nuisances={"material": ["wood"]})[0].prompt
    'A photo of a chair made of wood'
    """
    if each < 1:
        raise MiningError(f"each must be at least 1, got {each}")
    sentences = {**TEMPLATES, **(templates or {})}
    if other := [kind for kind in sentences if kind not in KINDS]:
        raise MiningError(f"a template must be for one of {', '.join(KINDS)}, got one for {other[0]!r}")
    pairs = [
        (category, kind, nuisance)
        for kind, names in (nuisances or BUILT_IN).items()
        for nuisance in names
        for category in categories
    ]
    if sample is not None:
        if not 1 <= sample <= len(pairs):
            raise MiningError(f"sample must be from 1 to {len(pairs)}, the number of pairs, got {sample}")
        chosen = random.Random(seed).sample(range(len(pairs)), sample)
        pairs = [pairs[i] for i in sorted(chosen)]
    return checked(
        [
            PlanItem(*pair, _prompt(sentences, *pair), _seed(seed, *pair, number))
            for pair in pairs
            for number in range(each)
        ]
    )


def write_plan(items: Sequence[PlanItem], path: Path, *, replace: bool = True) -> None:
    """Write a plan as a CSV file; with `replace=False` not over anything else that is there."""
    content = csv_text(_COLUMNS, map(astuple, items)).encode()
    if not replace and path.is_file() and path.read_bytes() != content:
        raise MiningError(
            f"a plan must have a file of its own, got {path}, which is there and is another; choose another "
            "name, or delete it"
        )
    write_output(path, content)


def read_plan(path: Path) -> tuple[PlanItem, ...]:
    """The plan in a CSV file; further columns are left alone."""
    return checked([item for item, _ in read_rows(path)])


def read_rows(path: Path) -> list[tuple[PlanItem, dict[str, str]]]:
    """The items of a CSV file, each with all columns of its row."""
    try:
        lines = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig")))
        rows = [(lines.line_num, row) for row in lines]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MiningError(f"a plan must be a CSV file in UTF-8, got {path}: {error}") from None
    if absent := [name for name in _COLUMNS if name not in (lines.fieldnames or ())]:
        raise MiningError(f"a plan must have the columns {', '.join(_COLUMNS)}, got no {absent[0]} in {path}")
    found = []
    for line, row in rows:
        values = {name: row[name] or "" for name in _COLUMNS}
        try:
            seed = int(values["seed"])
        except ValueError:
            raise MiningError(
                f"{path}, line {line}: seed must be a whole number, got {values['seed']!r}"
            ) from None
        item = PlanItem(values["category"], values["kind"], values["nuisance"], values["prompt"], seed)
        found.append((item, {key: value or "" for key, value in row.items() if isinstance(key, str)}))
    return found


def checked(items: Sequence[PlanItem]) -> tuple[PlanItem, ...]:
    """Items that can all be made: known kinds, names that folders can have, and none twice."""
    if not items:
        raise MiningError("a plan must have at least one image, got none")
    seen: set[str] = set()
    for item in items:
        if item.kind not in KINDS:
            raise MiningError(f"kind must be one of {', '.join(KINDS)}, got {item.kind!r}")
        for name, value in (("category", item.category), ("nuisance", item.nuisance)):
            if not value.strip() or value.startswith(".") or set(value) & set("/\\\0\n\r"):
                raise MiningError(f"{name} must be a name that a folder can have, got {value!r}")
        if not 0 <= item.seed < 2**32:
            raise MiningError(f"seed must be from 0 to {2**32 - 1}, got {item.seed}")
        if item.id in seen:
            raise MiningError(
                f"a row must be planned once, got {item.category} with {item.nuisance} and seed {item.seed} "
                "again"
            )
        seen.add(item.id)
    return tuple(items)


def _prompt(sentences: Mapping[str, str], category: str, kind: str, nuisance: str) -> str:
    if kind not in sentences:
        raise MiningError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    sentence = sentences[kind]
    if "{category}" not in sentence or "{nuisance}" not in sentence:
        raise MiningError(f"a template must have {{category}} and {{nuisance}} in it, got {sentence!r}")
    return sentence.replace("{category}", clean_name(category)).replace("{nuisance}", clean_name(nuisance))


def _seed(*facts: object) -> int:
    return int.from_bytes(sha256(json.dumps(facts).encode()).digest()[:4], "big")

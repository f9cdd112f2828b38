"""ImageNet-X: validation images of ImageNet, with the factor that makes each unusual."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from beaufort._core.errors import ImageFileError
from beaufort.data._checks import check_none_missing, reading
from beaufort.data._dataset import Dataset
from beaufort.data._load import parse_spec
from beaufort.data._reader import reader, readers
from beaufort.data.labels import class_ids

FACTORS = (
    *("pose", "background", "pattern", "color", "smaller", "shape", "partial_view", "subcategory", "texture"),
    *("larger", "darker", "object_blocking", "person_blocking", "style", "brighter", "multiple_objects"),
)
"""The factors of ImageNet-X, most frequent first."""
_NO_FACTOR = "none"
_PROTOTYPES = "prototypical_paths.csv"


@reader(
    "imagenet-x",
    "ImageNet's validation images, with imagenet_x_val_top_factor.jsonl after #",
    parts=None,
)
def open_imagenet_x(location: str, part: str) -> Dataset:
    """Open the annotated images, with the column `factor`.

    As in the published program, the images of `prototypical_paths.csv` beside the annotations are omitted.
    """
    if not part:
        raise ImageFileError(
            f"annotations of imagenet-x not named; pass imagenet-x:{location}#imagenet_x_val_top_factor.jsonl"
        )
    factors = read_factors(part)
    every = readers[parse_spec(location).kind or "folder"].open(location, "")
    check_none_missing("annotated images of imagenet-x", sorted(set(factors) - set(every.ids)), len(factors))
    chosen = [place for place, id in enumerate(every.ids) if id in factors]
    return replace(every.select(np.array(chosen, np.int64)), columns={"factor": factors})


def read_factors(path: Path | str) -> dict[str, str]:
    """Return the factor of each image of `imagenet_x_val_top_factor.jsonl`, by id `class/file`."""
    file = Path(path)
    prototypes: set[str] = set()
    if (beside := file.with_name(_PROTOTYPES)).is_file():
        with reading(beside):
            prototypes = set(beside.read_text(encoding="utf-8").split())
    found = {}
    with reading(f"{file} as annotations of ImageNet-X"):
        for line in filter(str.strip, file.read_text(encoding="utf-8").splitlines()):
            row = json.loads(line)
            names = [factor for factor in FACTORS if row[factor]]
            if len(names) > 1:
                raise ImageFileError(
                    f"{row['file_name']} has {len(names)} factors in {file}; use the file of top factors"
                )
            if row["file_name"] not in prototypes:
                id = f"{class_ids('imagenet-1k')[row['class']]}/{row['file_name']}"
                found[id] = names[0] if names else _NO_FACTOR
    if not found:
        raise ImageFileError(f"{file} has no annotations")
    return found

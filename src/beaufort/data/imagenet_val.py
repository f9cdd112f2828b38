"""ImageNet's validation set as it is unpacked: 50,000 pictures in one folder, and a list of what they show.

The data set is the one of a folder a class, with the ids, labels and digest that it has there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from beaufort._core.errors import ImageFileError
from beaufort.data._dataset import Dataset
from beaufort.data._files import Files
from beaufort.data._reader import reader
from beaufort.data.images import read_decompressed
from beaufort.data.labels import class_ids, devkit_ids

_PICTURE = re.compile(r"ILSVRC2012_val_(\d{8})\.(?:JPEG|jpeg|jpg)")
_COUNT = 50_000
_LISTS = (
    "ILSVRC2012_validation_ground_truth.txt",
    "imagenet_2012_validation_synset_labels.txt",
    "LOC_val_solution.csv",
    "val.txt",
)
_PLACES = ("", "ILSVRC2012_devkit_t12/data", "devkit/data")
_FORMS = (
    "50,000 numbers of the development kit from 1, or WordNet ids, one a line; or a file name with a WordNet "
    "id or a class number from 0 on each line, with a space or a comma between them"
)


def _detect(path: Path) -> bool:
    if not path.is_dir() or _list_of(path) is None:
        return False
    with os.scandir(path) as entries:
        return any(_PICTURE.fullmatch(entry.name) for entry in entries)


@reader(
    "imagenet-val",
    "a folder with ILSVRC2012_val_00000001.JPEG and so on, and ILSVRC2012_validation_ground_truth.txt or "
    "LOC_val_solution.csv in it or beside it",
    _detect,
    parts=None,
)
def open_imagenet_val(location: str, part: str) -> Dataset:
    """Every picture that is there; a part names the list where it lies elsewhere, `folder#lists/val.txt`."""
    folder = Path(location)
    table = Path(part) if part else _list_of(folder)
    if table is None:
        raise ImageFileError(
            f"the labels of {location} must be in a file, {' or '.join(_LISTS)}, in the folder or the one "
            "above; name another after #"
        )
    names = [path.name for path in folder.iterdir() if _PICTURE.fullmatch(path.name)]
    if not names:
        raise ImageFileError(f"{location} must have pictures called ILSVRC2012_val_00000001.JPEG and so on")
    wnid_of = _labels(table)
    if lost := [name for name in names if Path(name).stem not in wnid_of]:
        raise ImageFileError(f"{table} must have every picture of the folder; {lost[0]} is missing")
    ids = {f"{wnid_of[Path(name).stem]}/{name}": name for name in names}
    order = sorted(ids)
    classes = class_ids("imagenet-1k")
    places = {wnid: place for place, wnid in enumerate(classes)}
    labels = np.array([places[path.partition("/")[0]] for path in order], np.int64)
    pixels = Files(folder, [ids[path] for path in order])
    return Dataset(folder.name, classes, order, labels, pixels, by_name=True)


def _list_of(folder: Path) -> Path | None:
    above = folder.resolve().parent
    sought = (root / place / name for root in (folder, above) for place in _PLACES for name in _LISTS)
    return next((path for path in sought if path.is_file()), None)


def _labels(table: Path) -> dict[str, str]:
    """WordNet ids by file name without its ending.

    A name and its value may have a space or a comma between them, and Kaggle's list has boxes after it.
    """
    try:
        lines = read_decompressed(table).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ImageFileError(f"{table} must be a list in UTF-8 ({error!s:.80}), of {_FORMS}") from None
    rows = [re.split(r"[\s,]+", line.strip()) for line in lines if line.strip()]
    alone = all(len(row) == 1 for row in rows)
    if alone:
        if len(rows) != _COUNT:
            raise ImageFileError(
                f"{table} must have a line for each of {_COUNT:,} pictures, got {len(rows):,}"
            )
        names = [f"ILSVRC2012_val_{number:08}" for number in range(1, _COUNT + 1)]
        values = [row[0] for row in rows]
    else:
        rows = [row for row in rows if len(row) > 1 and row[0].startswith("ILSVRC2012_val_")]
        names, values = [row[0].partition(".")[0] for row in rows], [row[1] for row in rows]
    return dict(zip(names, map(_meaning(values, table, alone=alone), values), strict=True))


def _meaning(values: list[str], table: Path, *, alone: bool) -> Callable[[str], str]:
    """What turns a value of the list into a WordNet id; an error if the list is of no known form.

    Numbers that stand alone are the development kit's if all its classes can be among them: from 1.
    """
    known = class_ids("imagenet-1k")
    if values and set(values) <= set(known):
        return str
    if values and all(re.fullmatch(r"[0-9]{1,4}", value) for value in values):
        numbers = {int(value) for value in values}
        if max(numbers) <= 999 and (not alone or 0 in numbers):
            return lambda value: known[int(value)]
        if alone and min(numbers) >= 1 and max(numbers) <= 1000:
            return lambda value: devkit_ids()[int(value) - 1]
    raise ImageFileError(f"{table} must be a list of labels, of {_FORMS}")

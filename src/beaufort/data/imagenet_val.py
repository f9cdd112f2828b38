"""ImageNet's validation set as unpacked: 50,000 images in one directory, and a list of labels.

Ids, labels and digest are the same as for the same images in class directories.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from beaufort._core.errors import ImageFileError
from beaufort.data._checks import check_none_missing, find_file, reading
from beaufort.data._dataset import Dataset
from beaufort.data._files import Files, read_decompressed
from beaufort.data._reader import reader
from beaufort.data.labels import class_ids, devkit_ids

_IMAGE = re.compile(r"ILSVRC2012_val_(\d{8})\.(?:JPEG|jpeg|jpg)")
_COUNT = 50_000
_LISTS = (
    "ILSVRC2012_validation_ground_truth.txt",
    "imagenet_2012_validation_synset_labels.txt",
    "LOC_val_solution.csv",
    "val.txt",
)
_PLACES = ("", "ILSVRC2012_devkit_t12/data", "devkit/data")
_FORMS = (
    "one number of the development kit (from 1) or WordNet id per line for all 50,000 images, or lines with "
    "a file name and a WordNet id or class number (from 0)"
)


def _detect(path: Path) -> bool:
    if not path.is_dir() or not any(one.is_file() for one in _lists(path)):
        return False
    with os.scandir(path) as entries:
        return any(_IMAGE.fullmatch(entry.name) for entry in entries)


@reader(
    "imagenet-val",
    "a directory with ILSVRC2012_val_00000001.JPEG and so on, and ILSVRC2012_validation_ground_truth.txt or "
    "LOC_val_solution.csv in it or beside it",
    _detect,
    parts=None,
)
def open_imagenet_val(location: str, part: str) -> Dataset:
    """Open all images; a part names the list of labels if it is elsewhere, as in `folder#lists/val.txt`."""
    folder = Path(location)
    hint = f"; add one of {', '.join(_LISTS)}, or name another file after #"
    table = Path(part) if part else find_file(folder, _lists(folder), "labels", hint=hint)
    names = [path.name for path in folder.iterdir() if _IMAGE.fullmatch(path.name)]
    if not names:
        raise ImageFileError(f"no images found in {location}, such as ILSVRC2012_val_00000001.JPEG")
    wnid_of = _labels(table)
    missing = [name for name in names if Path(name).stem not in wnid_of]
    check_none_missing(f"labels in {table}", missing, len(names))
    ids = {f"{wnid_of[Path(name).stem]}/{name}": name for name in names}
    order = sorted(ids)
    classes = class_ids("imagenet-1k")
    places = {wnid: place for place, wnid in enumerate(classes)}
    labels = np.array([places[path.partition("/")[0]] for path in order], np.int64)
    pixels = Files(folder, [ids[path] for path in order])
    return Dataset(folder.name, classes, order, labels, pixels, by_name=True)


def _lists(folder: Path) -> Iterator[Path]:
    """Yield the paths that the list of labels may have."""
    roots = (folder, folder.resolve().parent)
    return (root / place / name for root in roots for place in _PLACES for name in _LISTS)


def _labels(table: Path) -> dict[str, str]:
    """Return WordNet ids by file name without extension.

    Name and value are separated by a space or a comma; Kaggle's list has bounding boxes after them.
    """
    with reading(f"{table} as text in UTF-8", UnicodeDecodeError):
        lines = read_decompressed(table).decode("utf-8-sig").splitlines()
    rows = [re.split(r"[\s,]+", line.strip()) for line in lines if line.strip()]
    alone = all(len(row) == 1 for row in rows)
    if alone:
        if len(rows) != _COUNT:
            raise ImageFileError(f"{table} must have {_COUNT:,} lines, one per image, got {len(rows):,}")
        names = [f"ILSVRC2012_val_{number:08}" for number in range(1, _COUNT + 1)]
        values = [row[0] for row in rows]
    else:
        rows = [row for row in rows if len(row) > 1 and row[0].startswith("ILSVRC2012_val_")]
        names, values = [row[0].partition(".")[0] for row in rows], [row[1] for row in rows]
    return dict(zip(names, map(_to_wnid(values, table, alone=alone), values), strict=True))


def _to_wnid(values: list[str], table: Path, *, alone: bool) -> Callable[[str], str]:
    """Return a function from a value of the list to a WordNet id.

    Numbers without file names are those of the development kit, which start from 1, unless 0 is among them.
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
    raise ImageFileError(f"{table} must be a list of labels: {_FORMS}")

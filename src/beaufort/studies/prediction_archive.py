"""All predictions of a study in one Parquet file, a quarter smaller than one file for each network.

Files with the same conditions and images form a group, which is one row. Networks fail on the same images, so
the bits of one image and condition lie side by side, a bit for each file.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from beaufort._core.errors import ImageFileError
from beaufort._core.files import write_bytes
from beaufort.studies.predictions import StudyPredictions, correct_only, read_predictions

ARCHIVE = "predictions.parquet"
_EARLIER = {"predictions/": "answers/", "photos/filters/": "photos/fronts/"}
"""Earlier names of folders, which studies and archives of earlier versions have."""


def archived(folder: Path) -> Mapping[str, StudyPredictions]:
    """Return the predictions in a study's archive, by file name; empty without an archive."""
    path = folder / ARCHIVE
    try:
        changed = path.stat().st_mtime_ns
    except FileNotFoundError:
        return {}
    return _read(path, changed)


def find_predictions(folder: Path, file: str) -> StudyPredictions:
    """Return the predictions of a file in a study's directory, or else in its archive."""
    path = _path(folder, file)
    if not path.is_file() and file in (found := archived(folder)):
        return found[file]
    return read_predictions(path)


def has_predictions(folder: Path, file: str) -> bool:
    """Return whether a study's directory or its archive has a file."""
    return _path(folder, file).exists() or file in archived(folder)


def _path(folder: Path, file: str) -> Path:
    """Return the path of a file, in a folder of the earlier name if only that has it."""
    for name, earlier in _EARLIER.items():
        if file.startswith(name) and not (folder / file).exists():
            other = folder / earlier / file.removeprefix(name)
            return other if other.exists() else folder / file
    return folder / file


def current_name(file: str) -> str:
    """Return the name of a file today."""
    for name, earlier in _EARLIER.items():
        if file.startswith(earlier):
            return name + file.removeprefix(earlier)
    return file


def predictions_by_seed(folder: Path, part: str) -> dict[str, list[StudyPredictions]]:
    """Return the predictions in the files `PART/NAME-seedN.npz` of a study, by name, sorted by seed."""
    places = (folder / part, folder / _EARLIER.get(f"{part}/", part))
    files = {f"{part}/{path.name}" for place in places for path in place.glob("*-seed*.npz")}
    files |= {file for file in archived(folder) if Path(file).parent == Path(part) and "-seed" in file}
    found: dict[str, dict[int, StudyPredictions]] = {}
    for file in sorted(files):
        name, _, seed = Path(file).stem.rpartition("-seed")
        if seed.isdecimal():
            found.setdefault(name, {})[int(seed)] = find_predictions(folder, file)
    return {name: [by_seed[seed] for seed in sorted(by_seed)] for name, by_seed in found.items()}


def write_archive(folder: Path, files: Sequence[str]) -> None:
    """Write the predictions of files in a study's directory, and those archived before, to its archive."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    every = {**archived(folder), **{current_name(file): read_predictions(folder / file) for file in files}}
    rows = [_row(dict(some)) for _, some in groupby(sorted(every.items(), key=_group), key=_group)]
    buffer = io.BytesIO()
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    pq.write_table(pa.table(columns), buffer, compression="zstd", compression_level=19)
    write_bytes(folder / ARCHIVE, buffer.getvalue())


def _group(item: tuple[str, StudyPredictions]) -> tuple[str, tuple[str, ...], bytes]:
    file, one = item
    return file.rpartition("/")[0], one.conditions, one.labels.tobytes()


def _row(files: dict[str, StudyPredictions]) -> dict[str, Any]:
    files = dict(sorted(files.items()))
    first = next(iter(files.values()))
    predicted = np.stack([one.predicted for one in files.values()], axis=-1).transpose(1, 0, 2)
    bits = bool((first.labels == 1).all() and (predicted <= 1).all())
    return {
        "files": list(files),
        "facts": [json.dumps(one.facts) for one in files.values()],
        "conditions": list(first.conditions),
        "images": len(first.labels),
        "labels": b"" if bits else first.labels.tobytes(),
        "predicted": b"" if bits else predicted.tobytes(),
        "correct": np.packbits(predicted).tobytes() if bits else b"",
    }


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> dict[str, StudyPredictions]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return {
            current_name(file): one for row in pq.read_table(path).to_pylist() for file, one in _files(row)
        }
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise ImageFileError(f"cannot read predictions from {path}: {error}") from None


def _files(row: dict[str, Any]) -> Iterator[tuple[str, StudyPredictions]]:
    conditions, shape = row["conditions"], (row["images"], len(row["conditions"]), len(row["files"]))
    if row["correct"]:
        values = np.unpackbits(np.frombuffer(row["correct"], np.uint8), count=int(np.prod(shape)))
    else:
        values = np.frombuffer(row["predicted"], np.uint8)
        labels = np.frombuffer(row["labels"], np.uint8)
    each = np.ascontiguousarray(values.reshape(shape).transpose(2, 1, 0))
    for file, facts, predicted in zip(row["files"], map(json.loads, row["facts"]), each, strict=True):
        if row["correct"]:
            yield file, correct_only(conditions, predicted, facts)
        else:
            yield file, StudyPredictions(tuple(conditions), predicted, labels, facts)

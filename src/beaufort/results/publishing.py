"""Publish the results of a store as a bundle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from beaufort import __version__
from beaufort._core.errors import OptionError
from beaufort._core.files import unused, write_bytes
from beaufort._core.text import command_without_secrets, csv_text, spreadsheet_cell, without_folders
from beaufort._core.validation import validate_output_directory
from beaufort.results._match import ResultsError
from beaufort.results.bundle import (
    MANIFEST,
    README,
    SCORES,
    Bundle,
    digest_of,
    encode_manifest,
    new_manifest,
    open_store,
    pack,
)
from beaufort.results.open import open_parts, stored_suites
from beaufort.results.other_models import ListedStore
from beaufort.results.results import Results
from beaufort.results.score_tables import COLUMNS, TidyRow, tidy_rows
from beaufort.results.scoring import score
from beaufort.store import Cell, FileStore, flat_origins, folder_name
from beaufort.store.columns import numbers_of
from beaufort.suites import get_suite

_COLUMNS = ("id", "label", "top", "p", "nll", "brier", "entropy")
_RESAMPLES, _SEED, _LEVEL = 1000, 0, 0.95
"""Settings of the intervals in `scores.csv`."""


def publish(
    store: str | Path | FileStore,
    output: str | Path,
    *,
    suite: str | None = None,
    models: Sequence[str] | None = None,
    seed: int | None = None,
    baseline: str | None = None,
    title: str | None = None,
    probabilities: bool = True,
) -> Bundle:
    """Write a bundle of the scores and predictions of a store, and return it.

    Args:
        store: a store, its folder or URL.
        output: the directory of the bundle, which must be new or empty.
        suite: the suite; that of the store's last run if None.
        models: only these; all complete models if None.
        seed: of the corruptions; that of the last run if None.
        baseline: what mCE divides by, as for `score`.
        title: title of the bundle; that of the suite if None.
        probabilities: whether to include probabilities and losses; without them the bundle is about a third
            as large, and has no calibration.
    """
    folder = validate_output_directory(output)
    if folder.is_dir() and any(folder.iterdir()):
        raise OptionError(f"output must be a new or empty directory, got {folder}")
    opened = open_store(store)
    opened.check_exists()
    parts = open_parts(opened, suite=suite, models=models, seed=seed)
    files: dict[str, bytes] = {}
    facts = _Facts()
    found = [
        one
        for part in parts
        for model in part.models
        for one in _predictions(part, model, facts, files, probabilities=probabilities)
    ]
    settings = {"baseline": baseline, "resamples": _RESAMPLES, "seed": _SEED, "level": _LEVEL}
    files[README] = _README.encode()
    whole = parts[0].part_of or parts[0].suite.title
    manifest = new_manifest(
        title=title or whole,
        beaufort=__version__,
        probabilities=probabilities,
        run=_run_record(opened, parts, suite),
        facts=facts.listed,
        predictions=found,
        intervals=settings,
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".beaufort-", dir=folder.parent) as passing:
        draft = Path(passing) / "bundle"
        _write(draft, manifest, files)
        # The scores are those of the bundle itself, so that what is read from it gives the same numbers.
        files[SCORES] = scores_of(Bundle(draft)).encode()
        _write(draft, manifest, files)
        if folder.is_dir():
            folder.rmdir()
        draft.rename(folder)
    return Bundle(folder)


def scores_of(bundle: Bundle) -> str:
    """Return the numbers of a bundle as CSV, computed from its predictions."""
    rows = ((part, *row) for part, row in score_rows(bundle))
    return csv_text(("suite", *COLUMNS), ((one[0], spreadsheet_cell(one[1]), *one[2:]) for one in rows))


def score_rows(bundle: Bundle) -> Iterable[tuple[str, TidyRow]]:
    """Yield the numbers of a bundle with the suite of each, computed from its predictions."""
    settings = bundle.manifest["intervals"]
    for part in open_parts(bundle):
        scores = score(
            part,
            baseline=settings["baseline"],
            resamples=int(settings["resamples"]),
            seed=int(settings["seed"]),
            level=float(settings["level"]),
        )
        for row in tidy_rows(scores):
            yield scores.suite.name, row


def _write(folder: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write the files, and the manifest last: a bundle without it is not one."""
    for name, content in files.items():
        if not (folder / name).is_file():
            write_bytes(folder / name, content)
    listed = {name: {"bytes": len(one), "sha256": digest_of(one)} for name, one in files.items()}
    write_bytes(folder / MANIFEST, encode_manifest({**manifest, "files": listed}))


class _Facts:
    """Facts of models, data and conditions, each listed once."""

    def __init__(self) -> None:
        self.listed: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, facts: Mapping[str, Any]) -> int:
        """Return the index of some facts in the list."""
        text = json.dumps(facts, sort_keys=True)
        if text not in self._places:
            self._places[text] = len(self.listed)
            self.listed.append(dict(facts))
        return self._places[text]


def _predictions(
    part: Results, model: str, facts: _Facts, files: dict[str, bytes], *, probabilities: bool
) -> Iterable[dict[str, Any]]:
    """Add the file of a model's predictions, and yield what the manifest says of it."""
    source = part.sources[model]
    if not isinstance(source, ListedStore):
        raise ResultsError(f"predictions of {model} are not in a store; pass the store of a run")
    cells = {str(condition): cell for condition, cell in part.cells[model].items()}
    name = unused(f"{folder_name(model)}.parquet", lambda name: _path(part, name) in files)
    file = _path(part, name)
    tables = {
        condition: source.store.read(cell, source.listing, _columns(cell))
        for condition, cell in cells.items()
    }
    files[file] = pack(tables, probabilities=probabilities)
    groups: dict[str, dict[str, Any]] = {}
    for condition, cell in cells.items():
        ranges = _ranges(tables[condition])
        about = {
            "file": file,
            "model": facts.place(cell.model),
            "data": facts.place(cell.data),
            "spans": ranges,
            "origins": _origins(source, cell),
        }
        group = groups.setdefault(json.dumps(about, sort_keys=True), {**about, "conditions": {}})
        group["conditions"][condition] = facts.place(cell.condition)
    return groups.values()


def _path(part: Results, name: str) -> str:
    return f"predictions/{folder_name(part.suite.name)}/{name}"


def _columns(cell: Cell) -> tuple[str, ...]:
    return (*_COLUMNS, *(("label_set",) if "truths" in cell.data.get("labels", ()) else ()))


def _ranges(table: pa.Table) -> list[list[int]]:
    """Return the ranges of images that a table has."""
    places = numbers_of(table["place"])
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    return [[int(some[0]), int(some[-1]) + 1] for some in np.split(places, breaks)]


def _origins(source: ListedStore, cell: Cell) -> list[dict[str, Any]]:
    """Return the provenance of the predictions of a cell, without directories of the author's disk."""
    if not isinstance(source.store, FileStore):
        return []
    pieces = source.listing.get(cell.fingerprint, [])
    distinct = {
        json.dumps(one, sort_keys=True): one
        for *_, origin in source.store.summaries(pieces)
        for one in map(_public, flat_origins(origin))
    }
    return list(distinct.values())


def _public(origin: Mapping[str, Any]) -> dict[str, Any]:
    command = origin.get("command")
    if not isinstance(command, list):
        return dict(origin)
    words = command_without_secrets(command)
    return {**origin, "command": list(map(without_folders, words))}


def _run_record(store: FileStore, parts: Sequence[Results], suite: str | None) -> dict[str, Any]:
    """Return the record of a run with all these models: it selects the suite, the data and the seed."""
    models = {
        json.dumps(cell.model, sort_keys=True): cell.model
        for part in parts
        for row in part.cells.values()
        for cell in row.values()
    }
    shared = {"seed": parts[0].setting.seed, "models": list(models.values())}
    each = list(map(_part_record, parts))
    if not parts[0].part_of:
        return {"suite": parts[0].suite.as_dict(), **each[0], **shared}
    known = [*stored_suites(store), *([get_suite(suite)] if suite is not None else [])]
    whole = next(one for one in known if one.title == parts[0].part_of and len(one.parts) == len(parts))
    return {"suite": whole.as_dict(), "parts": each, **shared}


def _part_record(part: Results) -> dict[str, Any]:
    row = next(iter(part.cells.values()))
    data = next(iter(row.values())).data
    scored = {"convention": part.setting.scored.convention, "truths": part.setting.scored.label_sets}
    facts: dict[str, Any] = {
        "data": {key: value for key, value in data.items() if key != "labels"},
        "labels": {key: value for key, value in scored.items() if value},
        "classes": list(part.classes),
    }
    if part.stored:
        facts["stored"] = {one.done: str(cell.condition["stored"]) for one, cell in row.items()}
    if part.outputs is not None:
        facts["outputs"] = part.outputs
    return facts


_README = """\
# Published results

This directory is a result bundle of Beaufort (`pip install beaufort`), which measures how robust image
classifiers are.

- `scores.csv`: every number with its 95 % interval, as fractions and ratios, not rounded.
- `predictions/`: Parquet files with a row for each image and condition: the image, its label, and the most
  probable classes.
- `bundle.json`: the suite, models, data and conditions, the versions and commands that computed the
  predictions, and the digests of all files.

Check that the scores follow from the predictions, and repeat a sample of the predictions:

    beaufort results verify .
    beaufort results verify . --rerun 300 --model MODEL --data DATA

All commands of Beaufort that read a result store read this directory: `beaufort report . -o report.html`.
"""

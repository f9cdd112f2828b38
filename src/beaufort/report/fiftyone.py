"""Images and predictions as a dataset that FiftyOne imports (`FiftyOneImageClassificationDataset`).

`labels.json` and the files of models have the same form: the class names, and the label of each image by its
path below `data` without extension. Models are further label fields of the same images.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.files import unused, write_bytes
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_count, validate_output_directory
from beaufort.data import Dataset
from beaufort.report.examples import Progress, RunImages, dataset_of_run
from beaufort.results import Predictions, Scores

_CLEAN = "clean"
"""Directory and name of the clean images."""


def export_fiftyone(
    scores: Scores,
    data: str | Dataset,
    output: Path | str,
    *,
    conditions: Sequence[str] | None = None,
    mistakes: bool = False,
    limit: int = 100,
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write images with labels and predictions in the JSON format that FiftyOne imports.

    The directory has the images in `data/<condition>`, the labels in `labels.json`, and the predictions of
    each model, with confidence, in `predictions/<model>.json`.

    Args:
        scores: the scores, whose models are exported.
        data: the dataset of the run, or a text for `load_dataset`.
        output: a new or empty directory.
        conditions: `clean` and conditions such as `fog@3`; all by default.
        mistakes: only images that a model classifies wrongly under the condition.
        limit: number of images per condition, drawn at random.
        seed: seed of the selection of images.
        progress: called after each condition.
    """
    limit = validate_count("limit", limit)
    source = RunImages(scores, dataset := dataset_of_run(scores, data))
    every = scores.predictions()
    first = every[scores.models[0].model]
    rows = _rows(first, conditions)
    folder = validate_output_directory(Path(output))
    if folder.is_dir() and any(folder.iterdir()):
        raise OptionError(f"output directory must be empty, got {folder}")
    chosen = {row: _chosen(list(every.values()), row, mistakes, limit, seed) for row in rows}
    classes = list(scores.results.classes or dataset.classes)
    keys: dict[tuple[int, int], str] = {}
    for done, (row, places) in enumerate(chosen.items(), 1):
        condition = first.conditions[row]
        for place in places.tolist():
            key = f"{condition.done or _CLEAN}/{_file_stem(first.ids[place], place)}"
            keys[row, place] = key
            pixels = source.corrupted(first.ids[place], condition)
            _write_file(folder / "data" / f"{key}.png", _png(pixels))
        if progress:
            progress(done, len(chosen))
    labeled = {key: {"label": _name(classes, int(first.labels[place]))} for (_, place), key in keys.items()}
    _write_labels(folder / "labels.json", classes, labeled)
    files: set[str] = set()
    for name, predictions in every.items():
        labels = {
            key: {
                "label": _name(classes, int(predictions.top[row, place, 0])),
                "confidence": float(predictions.confidence[row, place]),
                "attributes": {
                    "correct": bool(predictions.correct[row, place]),
                    "condition": first.conditions[row].done or _CLEAN,
                },
            }
            for (row, place), key in keys.items()
        }
        files.add(file := unused(_safe(name), files.__contains__))
        _write_labels(folder / "predictions" / f"{file}.json", classes, labels)
    return folder


def _rows(predictions: Predictions, wanted: Sequence[str] | None) -> list[int]:
    """Return the rows of some conditions, by name."""
    rows = {condition.done or _CLEAN: row for row, condition in enumerate(predictions.conditions)}
    for name in wanted or ():
        if name not in rows:
            raise UnknownNameError(unknown_message("condition of this run", name, rows))
    chosen = [rows[name] for name in dict.fromkeys(wanted or rows)]
    if attacks := [one.done for row in chosen if (one := predictions.conditions[row]).needs_model]:
        raise OptionError(
            f"cannot export {attacks[0]}: its images depend on the model; name other conditions"
        )
    return chosen


def _chosen(
    every: Sequence[Predictions], row: int, mistakes: bool, limit: int, seed: int
) -> NDArray[np.int64]:
    """Return the places of the images of a condition; the same for all conditions without `mistakes`."""
    order = np.random.default_rng([seed % 2**64, 3]).permutation(len(every[0])).astype(np.int64)
    if mistakes:
        wrong = np.any([~predictions.correct[row] for predictions in every], axis=0)
        order = order[wrong[order]]
    return np.sort(order[:limit])


def _file_stem(image: str, place: int) -> str:
    """Return a unique file name without extension: the place of the image and its id."""
    return f"{place:06d}-{_safe(image)[:80]}"


def _safe(name: str) -> str:
    """Return a name with the characters of file names only."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "unnamed"


def _name(classes: Sequence[str], label: int) -> str:
    """Return the name of a class; its number where it has no name or is not one of the dataset."""
    return classes[label] if label < len(classes) else str(label)


def _png(pixels: Bytes) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(buffer, "PNG")
    return buffer.getvalue()


def _write_labels(path: Path, classes: Sequence[str], labels: dict[str, Any]) -> None:
    text = json.dumps({"classes": list(classes), "labels": labels}, ensure_ascii=False, indent=1)
    _write_file(path, text.encode())


def _write_file(path: Path, content: bytes) -> None:
    try:
        write_bytes(path, content)
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None

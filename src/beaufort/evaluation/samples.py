"""A few pictures, with labels if they have any, to check a model with; read and prepared as in a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort._core.validation import validate_count
from beaufort.data import Problem, as_pixels, dataset_kind, decode_file, load_dataset, npz_arrays
from beaufort.data.images import is_image_name
from beaufort.data.labels import LabelSpace
from beaufort.evaluation.planning import Labels, space_of
from beaufort.evaluation.sources import ImageSource, no_image
from beaufort.models import Model, ModelSpec
from beaufort.models.network import spec_with_class_count
from beaufort.suites import Suite, get_suite


@dataclass(frozen=True)
class Samples:
    """Pictures `(n, h, w, c)` of one size, and what is right for each, if it is known."""

    images: Bytes
    labels: NDArray[np.int64] | None
    space: LabelSpace
    classes: tuple[str, ...] = ()
    """What the data set calls its classes."""
    problems: tuple[Problem, ...] = ()
    """Pictures that could not be read."""


def read_samples(
    data: str | Path,
    model: Model,
    *,
    limit: int = 200,
    suite: str | Suite | None = None,
    labels: Labels = None,
    convention: str | None = None,
) -> Samples:
    """Up to `limit` pictures, spread over the classes.

    Args:
        data: a text for `load_dataset`; or a folder of pictures, or an `.npz` file, without labels.
        model: the one to check; the first picture tells how many outputs it has if its spec does not.
        limit: the most pictures to read.
        suite: whose way of making pictures ready to use; none if None, as in a run on a list of conditions.
        labels: as for `evaluate`.
        convention: as for `evaluate`.
    """
    limit = validate_count("limit", limit)
    asked = get_suite(suite) if isinstance(suite, str) else suite
    spec = model.spec
    unlabeled = _unlabeled(Path(data), limit)
    if unlabeled is not None:
        found, unread = unlabeled
        if not found:
            raise no_image(str(data), unread)
        pictures = [spec.preprocessing.fit(picture[None])[0] for picture in found]
        space = LabelSpace(_counted(model, pictures[0]).classes)
        return Samples(_stacked(pictures, data, spec), None, space, problems=tuple(unread))
    dataset = load_dataset(str(data))
    dataset = dataset.balanced(0) if limit < len(dataset) else dataset
    prepare, scale = (asked.prepare, asked.scale) if asked else ((), "mnist" if _grey(spec) else "auto")
    source = ImageSource(dataset, min(limit, len(dataset)), prepare, scale, 0, asked)
    pictures, right, problems = _ready(source, spec)
    space = space_of(_counted(model, pictures[0]), source, labels, convention)
    stacked = _stacked(pictures, data, spec)
    return Samples(stacked, np.array(right, np.int64), space, dataset.classes, problems)


def _counted(model: Model, picture: Bytes) -> ModelSpec:
    """The model's spec with the number of its outputs, which a run counts, too, where it is not said."""
    try:
        return spec_with_class_count(model, picture)
    except Exception:  # that of any library; the check says what fails
        return model.spec


def _grey(spec: ModelSpec) -> bool:
    return spec.preprocessing.channels == 1


def _ready(source: ImageSource, spec: ModelSpec) -> tuple[list[Bytes], list[int], tuple[Problem, ...]]:
    """The pictures as the model would see them with their labels, and what cannot be read."""
    pictures, labels, problems = [], [], list(source.dataset.problems)
    for place in range(source.count):
        picture = source.images(place)
        if isinstance(picture, Problem):
            problems.append(picture)
            continue
        pictures.append(spec.preprocessing.fit(picture[None])[0])
        labels.append(int(source.dataset.labels[place]))
    if not pictures:
        raise no_image(source.dataset.name, problems)
    return pictures, labels, tuple(problems)


def _stacked(pictures: list[Bytes], data: str | Path, spec: ModelSpec) -> Bytes:
    if len({picture.shape for picture in pictures}) > 1:
        raise ImageFileError(
            f"pictures must be of one size for a model without an input size, got several in {data}; load "
            f"{spec.name} with input_size="
        )
    return np.stack(pictures)


def _unlabeled(path: Path, limit: int) -> tuple[list[Bytes], list[Problem]] | None:
    """Pictures without labels of a folder or an array, and what cannot be read; None for anything else."""
    if path.is_dir() and dataset_kind(path) is None:
        files = sorted(one for one in path.iterdir() if is_image_name(one.name))
        pictures: list[Bytes] = []
        problems: list[Problem] = []
        for place in _even(len(files), limit):
            try:
                pictures.append(decode_file(files[place]))
            except ImageFileError as error:
                problems.append(Problem(files[place].name, str(error)))
        return (pictures, problems) if files else None
    if path.suffix != ".npz" or not path.is_file():
        return None
    arrays = npz_arrays(path)
    if set(arrays) != {"images"}:
        return None
    pixels, count = as_pixels(arrays["images"])
    return [pixels.read(int(place)) for place in _even(count, limit)], []


def _even(count: int, limit: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, count - 1, min(count, limit)).round().astype(np.int64))

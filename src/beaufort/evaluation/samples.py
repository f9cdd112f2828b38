"""A few images for checks of a model, read and prepared as in a run."""

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
    """Images `(n, h, w, c)` of one size, and their labels if known."""

    images: Bytes
    labels: NDArray[np.int64] | None
    space: LabelSpace
    classes: tuple[str, ...] = ()
    """Class names of the dataset."""
    problems: tuple[Problem, ...] = ()
    """Images that could not be read."""


def read_samples(
    data: str | Path,
    model: Model,
    *,
    limit: int = 200,
    suite: str | Suite | None = None,
    labels: Labels = None,
    convention: str | None = None,
) -> Samples:
    """Return up to `limit` images, balanced over the classes.

    Args:
        data: a string for `load_dataset`; or a folder of images or an `.npz` file, without labels.
        model: the model; the first image determines its number of outputs if the spec does not.
        limit: maximum number of images.
        suite: suite that defines the preparation of images; none if None, as for a list of conditions.
        labels: as for `evaluate`.
        convention: as for `evaluate`.
    """
    limit = validate_count("limit", limit)
    named = get_suite(suite) if isinstance(suite, str) else suite
    spec = model.spec
    unlabeled = _unlabeled(Path(data), limit)
    if unlabeled is not None:
        found, unread = unlabeled
        if not found:
            raise no_image(str(data), unread)
        images = [spec.preprocessing.fit(image[None])[0] for image in found]
        space = LabelSpace(_with_class_count(model, images[0]).classes)
        return Samples(_stack(images, data, spec), None, space, problems=tuple(unread))
    dataset = load_dataset(str(data))
    dataset = dataset.balanced(0) if limit < len(dataset) else dataset
    gray = spec.preprocessing.channels == 1
    prepare, scale = (named.prepare, named.scale) if named else ((), "mnist" if gray else "auto")
    source = ImageSource(dataset, min(limit, len(dataset)), prepare, scale, 0, named)
    images, valid, problems = _labeled(source, spec)
    space = space_of(_with_class_count(model, images[0]), source, labels, convention)
    stacked = _stack(images, data, spec)
    return Samples(stacked, np.array(valid, np.int64), space, dataset.classes, problems)


def _with_class_count(model: Model, image: Bytes) -> ModelSpec:
    try:
        return spec_with_class_count(model, image)
    except Exception:  # of any library; the check reports it
        return model.spec


def _labeled(source: ImageSource, spec: ModelSpec) -> tuple[list[Bytes], list[int], tuple[Problem, ...]]:
    """Return the readable images at the model's input size with their labels, and the problems."""
    images, labels, problems = [], [], list(source.dataset.problems)
    for place in range(source.count):
        image = source.images(place)
        if isinstance(image, Problem):
            problems.append(image)
            continue
        images.append(spec.preprocessing.fit(image[None])[0])
        labels.append(int(source.dataset.labels[place]))
    if not images:
        raise no_image(source.dataset.name, problems)
    return images, labels, tuple(problems)


def _stack(images: list[Bytes], data: str | Path, spec: ModelSpec) -> Bytes:
    if len({image.shape for image in images}) > 1:
        raise ImageFileError(
            f"{spec.name} has no input size, so the images of {data} must be of one size; load it with "
            "input_size="
        )
    return np.stack(images)


def _unlabeled(path: Path, limit: int) -> tuple[list[Bytes], list[Problem]] | None:
    """Return the unlabeled images of a folder or an `.npz` file, and the problems; None for other data."""
    if path.is_dir() and dataset_kind(path) is None:
        files = sorted(one for one in path.iterdir() if is_image_name(one.name))
        images: list[Bytes] = []
        problems: list[Problem] = []
        for place in _evenly_spaced(len(files), limit):
            try:
                images.append(decode_file(files[place]))
            except ImageFileError as error:
                problems.append(Problem(files[place].name, str(error)))
        return (images, problems) if files else None
    if path.suffix != ".npz" or not path.is_file():
        return None
    arrays = npz_arrays(path)
    if set(arrays) != {"images"}:
        return None
    pixels, count = as_pixels(arrays["images"])
    return [pixels.read(int(place)) for place in _evenly_spaced(count, limit)], []


def _evenly_spaced(count: int, limit: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, count - 1, min(count, limit)).round().astype(np.int64))

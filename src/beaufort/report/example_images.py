"""Example images from other sources than the test images, which are never opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort._core.text import counted
from beaufort.corruptions import SCALES
from beaufort.data import Dataset, Step, load_dataset, prepare
from beaufort.data.images import flatten, is_image_name, read_image
from beaufort.data.labels import LabelSpace, class_names
from beaufort.models import Model, load_model
from beaufort.report.examples import (
    STRIP_BYTES,
    STRIPS,
    Examples,
    Prediction,
    Progress,
    Strip,
    show_strip,
)
from beaufort.report.painted_scene import paint_digit, paint_scene
from beaufort.report.thumbnails import Album
from beaufort.report.wording import spoken
from beaufort.results import Scores
from beaufort.suites import Suite

SCENE = "scene"
"""Name of a painted image, a landscape or a digit."""

_LARGE = 256
"""Short side of a painted landscape that is prepared like a photo."""

_BATCH = 16
_DIGITS = tuple("0123456789")


class _NamedImage(NamedTuple):
    name: str
    image: Image.Image
    label: int | None


def examples_of_images(
    scores: Scores,
    images: str | Dataset = SCENE,
    *,
    predict_with: Sequence[str | Model] = (),
    progress: Progress | None = None,
) -> Examples:
    """Return strips of images other than the test images, without misclassified images.

    Args:
        scores: the scores, whose suite is applied.
        images: a directory of images, a dataset or a text for `load_dataset`, or `scene`.
        predict_with: models, or texts for `load_model`, whose predictions for these images are shown.
        progress: called after each image.
    """
    suite, results = scores.suite, scores.results
    found, classes, origin = _find(scores, images)
    models = [load_model(one) if isinstance(one, str) else one for one in predict_with]
    by_digest = {one.digest: one.model for one in reversed(scores.models)}
    named = {by_digest.get(str(model.spec.digest), model.spec.name): model for model in models}
    conditions = suite.conditions("images")
    album, strips = Album(), []
    for number, one in enumerate(found, 1):
        if album.size < STRIP_BYTES:
            places, shown = show_strip(album, scores, _ready(suite, one.image), one.name, conditions)
            predictions = {
                name: _predict(model, shown, results.space(name) if name in results.cells else LabelSpace())
                for name, model in named.items()
            }
            strips.append(Strip(one.name, one.label, places, predictions))
        if progress:
            progress(number, len(found))
    who = spoken([model.spec.name for model in models]) if models else ""
    predicted = f"The predictions are by {who} and do not affect any metric."
    note = (
        f"{origin}, prepared and corrupted like the test images. This page contains no test images. "
        f"{predicted if models else 'Pass --examples SOURCE,model=MODEL to add predictions.'}"
    )
    names = classes or results.classes or _class_names(models)
    return Examples(tuple(album.images), tuple(strips), None, names, note)


def _find(scores: Scores, images: str | Dataset) -> tuple[list[_NamedImage], tuple[str, ...], str]:
    if images == SCENE:
        return [_painted(scores)], (), "A painted image"
    if isinstance(images, str) and (files := _files(Path(images))):
        read = [_NamedImage(path.name, flatten(read_image(path)), None) for path in files[:STRIPS]]
        return read, (), f"{counted(len(read), 'image')} of the directory {Path(images).resolve().name}"
    dataset = images if isinstance(images, Dataset) else load_dataset(images)
    if dataset.digest() == scores.results.setting.data:
        raise OptionError(
            f"--examples cannot show {dataset.name}, which contains the test images; pass --data instead"
        )
    samples = list(_samples(dataset))
    return samples, dataset.classes, f"{counted(len(samples), 'image')} of {dataset.name}"


def _files(path: Path) -> list[Path]:
    """Return the images in a directory; none if it is a dataset with labels.csv."""
    if not path.is_dir() or (path / "labels.csv").exists():
        return []
    return sorted(entry for entry in path.iterdir() if entry.is_file() and is_image_name(entry.name))


def _samples(dataset: Dataset) -> Iterator[_NamedImage]:
    """Yield a few images, evenly spaced over the dataset."""
    for place in np.linspace(0, len(dataset) - 1, min(STRIPS, len(dataset))).astype(int).tolist():
        sample = dataset[place]
        pixels = sample.image if sample.image.shape[-1] == 3 else sample.image[..., 0]
        yield _NamedImage(sample.id, Image.fromarray(pixels), sample.label)


def _painted(scores: Scores) -> _NamedImage:
    suite = scores.suite
    if suite.scale == "mnist":
        digits = scores.results.classes in ((), _DIGITS)
        return _NamedImage("painted digit", paint_digit(SCALES["mnist"]), 3 if digits else None)
    side = _LARGE if suite.prepare else SCALES.get(suite.scale, 224)
    return _NamedImage("painted landscape", paint_scene(side), None)


def _ready(suite: Suite, image: Image.Image) -> Bytes:
    """Return an image `(h, w, c)` of the size of the suite's test images."""
    image = image.convert("L" if suite.scale == "mnist" else "RGB")
    side = SCALES.get(suite.scale)
    steps = suite.prepare or ((Step("resize", side), Step("crop", side)) if side else ())
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    return np.ascontiguousarray(prepare(pixels, steps))


def _predict(model: Model, images: Sequence[Bytes], space: LabelSpace) -> tuple[Prediction, ...]:
    from scipy.special import softmax

    batches = (np.stack(images[i : i + _BATCH]) for i in range(0, len(images), _BATCH))
    logits = space.apply(np.concatenate([model(batch) for batch in batches])).astype(np.float64)
    return tuple(Prediction(int(row.argmax()), float(row.max())) for row in softmax(logits, axis=1))


def _class_names(models: Sequence[Model]) -> tuple[str, ...]:
    for spec in (model.spec for model in models):
        if spec.class_names:
            return spec.class_names
        if spec.label_space == "imagenet-1k":
            return class_names(spec.label_space)
    return ()

"""Examples on pictures that may be shown to anyone; the test images are never opened."""

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
from beaufort.report._text import spoken
from beaufort.report._thumbnails import Album
from beaufort.report.examples import STRIP_BYTES, STRIPS, Answer, Examples, Strip, Work, show_strip
from beaufort.report.gallery.scene import paint_digit, paint_scene
from beaufort.results import Scores
from beaufort.suites import Suite

SCENE = "scene"
"""Stands for a picture that is painted, a landscape or a digit."""

_ROOM = 256
"""Short side of a painted landscape that is to be made ready as a photo is."""


_BATCH = 16
_DIGITS = tuple("0123456789")


class _Picture(NamedTuple):
    name: str
    image: Image.Image
    truth: int | None


def examples_of_pictures(
    scores: Scores,
    pictures: str | Dataset = SCENE,
    *,
    ask: Sequence[str | Model] = (),
    progress: Work | None = None,
) -> Examples:
    """Strips of other pictures than the test images, and no mistakes.

    Args:
        scores: whose suite.
        pictures: a folder of pictures, a data set or a text for `load_dataset`, or `scene`.
        ask: models, or texts for `load_model`, whose answers to these pictures are shown.
        progress: called after each picture.
    """
    suite = scores.suite
    found, classes, origin = _find(scores, pictures)
    models = [load_model(one) if isinstance(one, str) else one for one in ask]
    asked = [(name := _known_as(scores, model), model, _space(scores, name)) for model in models]
    seed, conditions = scores.results.setting.seed or 0, suite.conditions("pictures")
    album, strips = Album(), []
    for number, picture in enumerate(found, 1):
        if album.size < STRIP_BYTES:
            clean = _ready(suite, picture.image)
            places, shown = show_strip(album, clean, picture.name, conditions, seed=seed, scale=suite.scale)
            answers = {name: _ask(model, shown, space) for name, model, space in asked}
            strips.append(Strip(picture.name, picture.truth, places, answers))
        if progress:
            progress(number, len(found))
    names = classes or scores.results.classes or _names(models)
    note = f"{origin}, made ready and corrupted as the test images were. No test image is in this page."
    return Examples(tuple(album.pictures), tuple(strips), None, names, f"{note} {_asked(models)}".strip(), 0)


def _asked(models: Sequence[Model]) -> str:
    if not models:
        return "No model was asked about them; --ask does that."
    return f"{spoken([model.spec.name for model in models])} gave the answers shown; they count in no number."


def _find(scores: Scores, pictures: str | Dataset) -> tuple[list[_Picture], tuple[str, ...], str]:
    if pictures == SCENE:
        return [_painted(scores)], (), "A painted picture"
    if isinstance(pictures, str) and (files := _files(Path(pictures))):
        read = [_Picture(path.name, flatten(read_image(path)), None) for path in files[:STRIPS]]
        return read, (), counted(len(read), "picture") + f" of the folder {Path(pictures).resolve().name}"
    dataset = pictures if isinstance(pictures, Dataset) else load_dataset(pictures)
    if dataset.digest() == scores.results.setting.data:
        raise OptionError(
            f"pictures must not be the test images, got {dataset.name}; use --data to show those"
        )
    samples = list(_samples(dataset))
    return samples, dataset.classes, f"{counted(len(samples), 'picture')} of {dataset.name}"


def _files(path: Path) -> list[Path]:
    """The pictures that lie directly in a folder; none if it is a data set with a list of its own."""
    if not path.is_dir() or (path / "labels.csv").exists():
        return []
    return sorted(entry for entry in path.iterdir() if entry.is_file() and is_image_name(entry.name))


def _samples(dataset: Dataset) -> Iterator[_Picture]:
    """A few pictures from all over the data set."""
    for place in np.linspace(0, len(dataset) - 1, min(STRIPS, len(dataset))).astype(int).tolist():
        sample = dataset[place]
        pixels = sample.image if sample.image.shape[-1] == 3 else sample.image[..., 0]
        yield _Picture(sample.id, Image.fromarray(pixels), sample.label)


def _painted(scores: Scores) -> _Picture:
    suite = scores.suite
    if suite.scale == "mnist":
        digits = scores.results.classes in ((), _DIGITS)
        return _Picture("painted digit", paint_digit(SCALES["mnist"]), 3 if digits else None)
    side = _ROOM if suite.prepare else SCALES.get(suite.scale, 224)
    return _Picture("painted landscape", paint_scene(side), None)


def _ready(suite: Suite, picture: Image.Image) -> Bytes:
    """A picture `(h, w, c)` as large as the suite's test images, whatever size it came in."""
    picture = picture.convert("L" if suite.scale == "mnist" else "RGB")
    side = SCALES.get(suite.scale)
    steps = suite.prepare or ((Step("resize", side), Step("crop", side)) if side else ())
    pixels = np.asarray(picture).reshape(picture.height, picture.width, -1)
    return np.ascontiguousarray(prepare(pixels, steps))


def _space(scores: Scores, name: str) -> LabelSpace:
    """The space in which the report has a model's answers; the model's own outputs if it has none."""
    return scores.results.space(name) if name in scores.results.cells else LabelSpace()


def _ask(model: Model, shown: Sequence[Bytes], space: LabelSpace) -> tuple[Answer, ...]:
    from scipy.special import softmax

    batches = (np.stack(shown[i : i + _BATCH]) for i in range(0, len(shown), _BATCH))
    logits = space.apply(np.concatenate([model(batch) for batch in batches])).astype(np.float64)
    shares = softmax(logits, axis=1)
    return tuple(Answer(int(row.argmax()), float(row.max())) for row in shares)


def _known_as(scores: Scores, model: Model) -> str:
    """What the report calls this model, if it has it."""
    spec = model.spec
    return next((one.model for one in scores.models if one.digest == spec.digest), spec.name)


def _names(models: Sequence[Model]) -> tuple[str, ...]:
    for spec in (model.spec for model in models):
        if spec.class_names:
            return spec.class_names
        if spec.label_space == "imagenet-1k":
            return class_names(spec.label_space)
    return ()

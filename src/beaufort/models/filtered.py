"""A model with an image filter: images are filtered, or seen in several views, before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from beaufort._core.arrays import Bytes, Images, checked_pixels, on_host
from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.validation import validate_count
from beaufort.models.filters import BEFORE_SCALING, ImageFilter, load_filter
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Logits, Model, ModelSpec


@dataclass(frozen=True)
class FilteredModel:
    """A `Model` behind an image filter; the image filter is part of its name and of its digest.

    Filters act on images of the model's size and channels, still 8-bit: they are resized and cropped first.
    Views are cut from a larger image. Images are brought to it as they are to the model's input: stretched
    where the model stretches them (or the image is not square), else by their short side, and the middle is
    cut out. A image that is as large as the input is the model's own. The model's probabilities for the
    views are averaged; the logits are then logarithms of the mean probabilities.
    """

    model: Model
    filter: ImageFilter
    threads: int | None = None
    """For the image filter; all processors if None."""

    def __post_init__(self) -> None:
        if isinstance(self.model, FilteredModel):
            raise OptionError(
                f"{self.model.spec.name} has an image filter already; use with_filter to join them"
            )
        if not isinstance(self.model, Model):
            raise OptionError(
                f"model must be a Model, got {type(self.model).__name__}; use load_model or as_model"
            )
        if self.threads is not None:
            validate_count("threads", self.threads)
        self._source()  # crops that the model has no room for are refused before any image is shown

    @property
    def spec(self) -> ModelSpec:
        """That of the model, with the image filter in its name and its details."""
        own = self.model.spec
        views = self._kind_of_views()
        return replace(
            own,
            name=f"{own.name}+{self.filter.name}",
            details={
                **(own.details or {}),
                "front": self.filter.facts,
                **({"views": views} if views else {}),  # nothing otherwise: other digests stay
            },
        )

    @property
    def device(self) -> str:
        """Where the model runs; an image filter works on the processor."""
        return str(getattr(self.model, "device", "cpu"))

    def __call__(self, images: Images) -> Logits:
        """Float32 logits `(n, classes)` of uint8 images `(n, h, w, 1 or 3)`, an array or a torch tensor."""
        return self.mean_logits(self.view_logits(images))

    def view_logits(self, images: Images) -> list[Logits]:
        """The model's own answers: one to images behind filters, or one to each view."""
        return [self.model(view) for view in self.views(images)]

    def mean_logits(self, answers: list[Logits]) -> Logits:
        """What is answered, of the model's own answers."""
        if self.filter.views is None or len(answers[0]) == 0:
            return answers[0]
        from scipy.special import softmax

        shares = sum(softmax(np.asarray(answer, np.float64), axis=1) for answer in answers)
        means = np.maximum(shares / len(answers), np.finfo(np.float64).tiny)
        return np.asarray(np.log(means), np.float32)

    def views(self, images: Images) -> list[Bytes]:
        """What the model is shown of images: as they are behind filters, or the views in turn."""
        images = self._source().fit(on_host(checked_pixels(images, BEFORE_SCALING)))
        return self.filter.show(images, self.model.spec.input_size or images.shape[1:3], self.threads)

    @property
    def preparation(self) -> str:
        """In words, what happens to images: to their size, by the image filter, to their values.

        >>> from beaufort.models import load_model
        >>> with_filter(load_model("demo:digits"), "ten-crop:side=32").preparation
        'short side 32 bilinear, middle 32×32, ten-crop-side32 of 28×28, grey 0..1, NCHW float32'
        """
        height, width = self.model.spec.input_size or (0, 0)
        steps = [
            f"{step.name} of {height}×{width}" if step.makes_views else step.name
            for step in self.filter.steps
        ]
        return self._source().described(*steps)

    def _source(self) -> Preprocessing:
        """How images come to the size that the image filter takes them in."""
        preprocessing, views = self.model.spec.preprocessing, self.filter.views
        if views is not None:
            if preprocessing.size is None:
                raise OptionError(
                    f"{self.filter.name} needs a model with an input size; {self.model.spec.name} has none, "
                    "load it with input_size=224, say"
                )
            size = views.source_size(preprocessing.size)
            if size != preprocessing.size:
                preprocessing = preprocessing.at_size(size)
        return preprocessing

    def _kind_of_views(self) -> str:
        """What digests say of the image that is cut; empty if its short side is resized to its size."""
        preprocessing = self.model.spec.preprocessing
        if self.filter.views is None:
            return ""
        at_once = preprocessing.at_size(preprocessing.size).resize
        if self._source() == preprocessing and preprocessing.resize not in (None, at_once):
            return "of the input"
        return "stretched" if preprocessing.stretches else ""


def with_filter(
    model: Model, image_filter: str | ImageFilter | Sequence[str], *, threads: int | None = None
) -> FilteredModel:
    """A model with something done to images before they reach it.

    >>> from beaufort.models import load_model
    >>> with_filter(load_model("demo:digits"), "nlm:above=0.03").spec.name
    'digits+nlm-above0.03'

    Args:
        model: any model. Where it has an image filter, the new one comes before that.
        image_filter: as `load_filter` takes it: `clahe:clip=2,tiles=8`, or several in their order.
        threads: for the image filter; all processors if not given. It changes no answer.
    """
    chosen = load_filter(image_filter)
    if isinstance(model, FilteredModel):
        both = ImageFilter((*chosen.steps, *model.filter.steps))
        return FilteredModel(model.model, both, model.threads if threads is None else threads)
    return FilteredModel(model, chosen, threads)


def missing_filter_note(spec: ModelSpec) -> str:
    """That a model was trained behind an image filter that is not before it now; empty if that is not so."""
    if not spec.trained_behind:
        return ""
    shown = (spec.details or {}).get("front")
    try:
        if shown == load_filter(spec.trained_behind).facts:
            return ""
    except BeaufortError:  # of a kind that is not known here, so it is not the one that is shown
        pass
    how = "behind another image filter" if shown else "without an image filter"
    wanted = " ".join(f"--filter {text}" for text in spec.trained_behind)
    return (
        f"{spec.name} was trained on images behind {' and '.join(spec.trained_behind)}, and is shown them "
        f"{how}; `filter` ({wanted}) shows them as in the training"
    )

"""A model with an image filter, which changes images or makes several views of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from beaufort._core.arrays import Bytes, Images, checked_pixels, on_host
from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.validation import validate_count
from beaufort.models.filters import BEFORE_SCALING, ImageFilter, load_filter
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Logits, Model, ModelSpec, StatefulModel


@dataclass(frozen=True)
class FilteredModel:
    """A `Model` with an image filter, which is part of its name and its digest.

    Filters act on uint8 images of the model's size and channels: images are resized and cropped first.
    Views are cut from a larger image. Images are resized to it as to the model's input: stretched if the
    model stretches them (or if it is not square), else by their short side with a center crop. An image as
    large as the input is the model's own. The model's probabilities for the views are averaged; the logits
    are logarithms of the mean probabilities.
    """

    model: Model
    filter: ImageFilter
    threads: int | None = None
    """Threads of the image filter; one per processor if None."""

    def __post_init__(self) -> None:
        if isinstance(self.model, StatefulModel):
            raise OptionError(f"image filters cannot be used with {self.model.spec.name}, which adapts")
        if not isinstance(self.model, Model) or isinstance(self.model, FilteredModel):
            raise OptionError(
                f"model must be a Model without an image filter, got {type(self.model).__name__}; use "
                "load_model or as_model, and with_filter to combine filters"
            )
        if self.threads is not None:
            validate_count("threads", self.threads)
        self._source()  # rejects crops that are too large or too small for the model

    @property
    def spec(self) -> ModelSpec:
        """The model's spec, with the image filter in its name and details."""
        own = self.model.spec
        views = self._kind_of_views()
        return replace(
            own,
            name=f"{own.name}+{self.filter.name}",
            details={
                **(own.details or {}),
                "front": self.filter.facts,  # the earlier name of filters is part of fingerprints
                **({"views": views} if views else {}),  # no key otherwise, for stable digests
            },
        )

    @property
    def device(self) -> str:
        """The device of the model; image filters run on the CPU."""
        return str(getattr(self.model, "device", "cpu"))

    def __call__(self, images: Images) -> Logits:
        """Return float32 logits `(n, classes)` of uint8 images `(n, h, w, 1 or 3)`, an array or a tensor."""
        return self.mean_logits(self.view_logits(images))

    def view_logits(self, images: Images) -> list[Logits]:
        """Return the model's logits of each view, of which there is one for filters without views."""
        return [self.model(view) for view in self.views(images)]

    def mean_logits(self, logits: list[Logits]) -> Logits:
        """Return the logarithm of the mean probabilities of the views."""
        if self.filter.views is None or len(logits[0]) == 0:
            return logits[0]
        from scipy.special import softmax

        total = sum(softmax(np.asarray(one, np.float64), axis=1) for one in logits)
        means = np.maximum(total / len(logits), np.finfo(np.float64).tiny)
        return np.asarray(np.log(means), np.float32)

    def views(self, images: Images) -> list[Bytes]:
        """Return the images that the model receives: the filtered images, or each view of them."""
        images = self._source().fit(on_host(checked_pixels(images, BEFORE_SCALING)))
        return self.filter.apply(images, self.model.spec.input_size or images.shape[1:3], self.threads)

    @property
    def preparation(self) -> str:
        """Description of the preprocessing with the image filter.

        >>> from beaufort.models import load_model
        >>> with_filter(load_model("demo:digits"), "ten-crop:side=32").preparation
        'short side 32 bilinear, center 32×32, ten-crop-side32 of 28×28, gray 0..1, NCHW float32'
        """
        height, width = self.model.spec.input_size or (0, 0)
        steps = [
            f"{step.name} of {height}×{width}" if step.makes_views else step.name
            for step in self.filter.steps
        ]
        return self._source().described(*steps)

    def _source(self) -> Preprocessing:
        """Return the preprocessing up to the size of the image filter's input."""
        preprocessing, views = self.model.spec.preprocessing, self.filter.views
        if views is None:
            return preprocessing
        if preprocessing.size is None:
            raise OptionError(
                f"{self.filter.name} requires an input size, which {self.model.spec.name} does not have; "
                "load it with input_size=224, for example"
            )
        size = views.source_size(preprocessing.size)
        return preprocessing if size == preprocessing.size else preprocessing.at_size(size)

    def _kind_of_views(self) -> str:
        """Return the kind of the cropped image in digests; empty if its short side is resized."""
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
    """Return a model with an image filter.

    >>> from beaufort.models import load_model
    >>> with_filter(load_model("demo:digits"), "nlm:above=0.03").spec.name
    'digits+nlm-above0.03'

    Args:
        model: any model. If it has an image filter, the new one is applied first.
        image_filter: as for `load_filter`: `clahe:clip=2,tiles=8`, or a list of several.
        threads: threads of the image filter; one per processor by default. They change no prediction.
    """
    chain = load_filter(image_filter)
    if isinstance(model, FilteredModel):
        both = ImageFilter((*chain.steps, *model.filter.steps))
        return FilteredModel(model.model, both, model.threads if threads is None else threads)
    return FilteredModel(model, chain, threads)


def missing_filter_note(spec: ModelSpec) -> str:
    """Return a note if a model was trained with another image filter; else an empty string."""
    if not spec.trained_behind:
        return ""
    current = (spec.details or {}).get("front")
    try:
        if current == load_filter(spec.trained_behind).facts:
            return ""
    except BeaufortError:  # a kind that is unknown here, so not the current one
        pass
    how = "with another image filter" if current else "without an image filter"
    options = " ".join(f"--filter {text}" for text in spec.trained_behind)
    return (
        f"{spec.name} was trained with the image filter {' and '.join(spec.trained_behind)} and is evaluated "
        f"{how}; pass {options}"
    )

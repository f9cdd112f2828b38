"""A network behind its preprocessing: what every adapter returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, Images, checked_pixels, is_tensor, on_host
from beaufort._core.validation import validate_count
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Logits, Model, ModelError, ModelSpec


@dataclass(frozen=True)
class Network:
    """A `Model` made of a spec and a function from prepared arrays to logits.

    Checking, preprocessing, splitting into batches and the conversion to float32 happen here, once; an
    adapter only runs its library.
    """

    spec: ModelSpec
    forward: Callable[[NDArray[Any]], Any]
    """Logits of a batch that `spec.preprocessing` made."""
    device: str = "cpu"
    max_batch: int | None = None
    """The most images the network takes at once; more are run in turns."""
    on_device: Callable[[Any], Any] | None = None
    """As `forward`, from tensors to tensors on its device; None where a network takes arrays only."""
    channels_last: bool = False
    """How tensors for `on_device` are laid out in memory."""
    differentiable: Callable[[Any], Any] | None = None
    """As `on_device`, with gradients; None where a network has none."""
    unchanged: Callable[[], bool] | None = None
    """Whether the weights are still those of the spec; None where nobody else can change them."""

    def __post_init__(self) -> None:
        if self.max_batch is not None:
            validate_count("max_batch", self.max_batch)

    def __call__(self, images: Images) -> Logits:
        """Float32 logits `(n, classes)` of uint8 images `(n, h, w, 1 or 3)`, an array or a torch tensor."""
        images = checked_pixels(images, "a model scales the values itself")
        if is_tensor(images) and self.takes_tensors(images):
            answer: Logits = self.predict_tensors(images).cpu().numpy()
            return answer
        images = on_host(images)
        step = self.max_batch or max(1, len(images))
        parts = [self._run(images[start : start + step]) for start in range(0, len(images), step)]
        if parts:
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        self.spec.preprocessing.apply(images)  # says what is wrong with them
        return np.empty((0, self.spec.classes or 0), np.float32)

    def takes_tensors(self, images: Images) -> bool:
        """Whether `predict_tensors` takes these images: tensors that need no resize."""
        fits = self.spec.preprocessing.size in (None, tuple(images.shape[1:3])) and len(images) > 0
        return self.on_device is not None and is_tensor(images) and fits

    def predict_tensors(self, images: Any) -> Any:
        """Float32 logits, on the network's device, of tensors that are there; the host does not wait."""
        from beaufort.models.tensors import preprocess_tensors

        return self._in_turns(
            self.on_device,
            images,
            lambda some: preprocess_tensors(some, self.spec.preprocessing, channels_last=self.channels_last),
        )

    def pixels(self, images: Images) -> Any:
        """Values in 0..1, a float32 tensor `(n, c, h, w)` of the network's size and channels, on its device.

        They are what `logits_of_pixels` and `predict_pixels` take, and what an attack may change. Images are
        uint8 `(n, h, w, 1 or 3)`, as for a call.
        """
        from beaufort.models.tensors import as_pixels

        return as_pixels(self.spec.preprocessing.fit(on_host(images)), self.device)

    def logits_of_pixels(self, pixels: Any) -> Any:
        """Float32 logits of values in 0..1, with gradients; normalization is part of the network here."""
        return self._in_turns(self.differentiable, pixels, self._prepared_pixels)

    def predict_pixels(self, pixels: Any) -> Any:
        """Float32 logits of values in 0..1, on the device; of unchanged ones those that a call gives."""
        return self._in_turns(self.on_device, pixels, self._prepared_pixels)

    def _prepared_pixels(self, pixels: Any) -> Any:
        from beaufort.models.tensors import preprocess_pixels

        return preprocess_pixels(pixels, self.spec.preprocessing)

    def _in_turns(self, run: Callable[[Any], Any] | None, images: Any, prepare: Callable[[Any], Any]) -> Any:
        import torch

        assert run is not None
        step = self.max_batch or max(1, len(images))
        logits = []
        for start in range(0, len(images), step):
            part = prepare(images[start : start + step])
            logits.append(run(part))
            self._check(tuple(logits[-1].shape), "float32", len(part))
        return logits[0] if len(logits) == 1 else torch.cat(logits)

    def with_preprocessing(self, preprocessing: Preprocessing) -> Network:
        """The same network behind another preprocessing, with a digest of its own."""
        return replace(self, spec=replace(self.spec, preprocessing=preprocessing))

    def with_class_count(self) -> Network:
        """The network with its number of classes, found by showing it a black image if need be.

        If it has no input size, 32×32 is tried. One that takes no images of that size is left as it is: a
        run shows it the first of its own.
        """
        if self.spec.classes is not None:
            return self
        size = self.spec.input_size
        black = np.zeros((*(size or (32, 32)), self.spec.preprocessing.channels), np.uint8)
        try:
            return replace(self, spec=spec_with_class_count(self, black))
        except Exception:  # that of any library
            if size is not None:
                raise
            return self

    def _run(self, images: Bytes) -> Logits:
        answer = self.forward(self.spec.preprocessing.apply(images))
        if is_tensor(answer):  # of a function around a torch module: with a gradient, or on a device, maybe
            answer = (answer.float() if answer.is_floating_point() else answer).detach().cpu()
        logits = np.asarray(answer)
        self._check(logits.shape, str(logits.dtype), len(images))
        return np.ascontiguousarray(logits, np.float32)

    def _check(self, shape: tuple[int, ...], dtype: str, count: int) -> None:
        numbers = dtype.startswith(("float", "int", "uint"))
        if len(shape) != 2 or shape[0] != count or not shape[1] or not numbers:
            raise ModelError(
                f"{self.spec.name} must return logits of shape ({count}, classes), got {dtype} of shape "
                f"{shape}"
            )
        if self.spec.classes not in (None, shape[1]):
            raise ModelError(
                f"{self.spec.name} must return {self.spec.classes} logits per image, its number of classes, "
                f"got {shape[1]}; load it with classes={shape[1]} if that is right"
            )


def check_unchanged(model: Model) -> None:
    """Refuse a model whose module has learned since: its answers would be kept as those of old weights."""
    unchanged = getattr(getattr(model, "model", model), "unchanged", None)  # that behind an image filter, too
    if unchanged is not None and not unchanged():
        raise ModelError(
            f"the weights of {model.spec.name} must be those that it was made of, got others: its module has "
            "changed; call as_model(module) again"
        )


def spec_with_class_count(model: Model, image: Bytes) -> ModelSpec:
    """The spec of a model with the number of its classes, found by showing it an image if need be.

    Args:
        model: the model.
        image: any that it takes, `(h, w, c)`.
    """
    if model.spec.classes is not None:
        return model.spec
    logits = np.asarray(model(image[None]))
    if logits.ndim != 2 or len(logits) != 1:  # whoever uses the answers says what is wrong with them
        return model.spec
    return replace(model.spec, classes=logits.shape[1])

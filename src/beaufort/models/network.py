"""A network with its preprocessing: the model that every adapter returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, Images, checked_pixels, is_tensor, on_host
from beaufort._core.errors import BeaufortError
from beaufort._core.validation import validate_count
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Logits, Model, ModelError, ModelSpec


@dataclass(frozen=True)
class Network:
    """A `Model` of a spec and a function from preprocessed arrays to logits.

    It validates, preprocesses, splits into batches and converts to float32; an adapter only runs its library.
    """

    spec: ModelSpec
    forward: Callable[[NDArray[Any]], Any]
    """Function from a batch of `spec.preprocessing` to logits."""
    device: str = "cpu"
    max_batch: int | None = None
    """Largest number of images to run at once."""
    on_device: Callable[[Any], Any] | None = None
    """As `forward`, from tensors to tensors on its device; None if the network takes arrays only."""
    channels_last: bool = False
    """Memory format of tensors for `on_device`."""
    differentiable: Callable[[Any], Any] | None = None
    """As `on_device`, with gradients; None if there are none."""
    unchanged: Callable[[], bool] | None = None
    """Whether the weights are still those of the spec; None if nothing else can change them."""
    module: Any = None
    """The torch module; None if a copy of it cannot be adapted."""

    def __post_init__(self) -> None:
        if self.max_batch is not None:
            validate_count("max_batch", self.max_batch)

    def __call__(self, images: Images) -> Logits:
        """Return float32 logits `(n, classes)` of uint8 images `(n, h, w, 1 or 3)`, an array or a tensor."""
        images = checked_pixels(images, "a model scales the values itself")
        if is_tensor(images) and self.takes_tensors(images):
            return np.asarray(self.predict_tensors(images).cpu().numpy())
        images = on_host(images)
        if len(images) == 0:
            self.spec.preprocessing.apply(images)  # validates their size
            return np.empty((0, self.spec.classes or 0), np.float32)
        step = self.max_batch or len(images)
        return np.concatenate(
            [self._run(images[start : start + step]) for start in range(0, len(images), step)]
        )

    def takes_tensors(self, images: Images) -> bool:
        """Whether `predict_tensors` takes these images: tensors that need no resize."""
        fits = self.spec.preprocessing.size in (None, tuple(images.shape[1:3])) and len(images) > 0
        return self.on_device is not None and is_tensor(images) and fits

    def predict_tensors(self, images: Any) -> Any:
        """Return float32 logits of tensors, both on the network's device, without waiting for it."""
        from beaufort.models.tensors import preprocess_tensors

        return self._batched(
            self.on_device,
            images,
            lambda part: preprocess_tensors(part, self.spec.preprocessing, channels_last=self.channels_last),
        )

    def pixels(self, images: Images) -> Any:
        """Return uint8 images `(n, h, w, 1 or 3)` as the tensor that an attack may change.

        It has the network's size and channels and is on its device: float32 values in [0, 1], `(n, c, h, w)`,
        the input of `logits_of_pixels` and `predict_pixels`.
        """
        from beaufort.models.tensors import as_pixels

        return as_pixels(self.spec.preprocessing.fit(on_host(images)), self.device)

    def logits_of_pixels(self, pixels: Any) -> Any:
        """Return float32 logits of values in [0, 1], with gradients through the normalization."""
        return self._batched(self.differentiable, pixels, self._preprocess_pixels)

    def predict_pixels(self, pixels: Any) -> Any:
        """Return float32 logits of values in [0, 1], on the device; for unchanged ones, those of a call."""
        return self._batched(self.on_device, pixels, self._preprocess_pixels)

    def _preprocess_pixels(self, pixels: Any) -> Any:
        from beaufort.models.tensors import preprocess_pixels

        return preprocess_pixels(pixels, self.spec.preprocessing)

    def _batched(self, run: Callable[[Any], Any] | None, images: Any, prepare: Callable[[Any], Any]) -> Any:
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
        """Return the network with another preprocessing, and so another digest."""
        return replace(self, spec=replace(self.spec, preprocessing=preprocessing))

    def with_class_count(self) -> Network:
        """Return the network with its number of classes, determined with a black image if unknown.

        Without an input size, 32×32 is tried; a network that rejects it is returned unchanged.
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
        output = self.forward(self.spec.preprocessing.apply(images))
        if is_tensor(output):  # of a function around a torch module, perhaps with a gradient or on a GPU
            output = (output.float() if output.is_floating_point() else output).detach().cpu()
        logits = np.asarray(output)
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
    """Reject a model whose weights have changed: its predictions would be stored as those of the old ones."""
    unchanged = getattr(getattr(model, "model", model), "unchanged", None)  # also behind an image filter
    if unchanged is not None and not unchanged():
        raise ModelError(f"the weights of {model.spec.name} changed after as_model(module); call it again")


def spec_with_class_count(model: Model, image: Bytes) -> ModelSpec:
    """Return the spec with the number of classes, determined with an image `(h, w, c)` if unknown."""
    if model.spec.classes is not None:
        return model.spec
    try:
        logits = np.asarray(model(image[None]))
    except BeaufortError:
        raise
    except Exception:  # batch normalization in training mode rejects a single image
        logits = np.asarray(model(np.stack([image, image])))
    if logits.ndim != 2 or len(logits) > 2:  # reported when the predictions are used
        return model.spec
    return replace(model.spec, classes=logits.shape[1])

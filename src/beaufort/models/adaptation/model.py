"""A network that adapts to the batches it predicts."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, checked_pixels, on_host
from beaufort.models.network import Network
from beaufort.models.spec import Logits, ModelSpec

_PASSES = "passes"


class AdaptedModel:
    """A `StatefulModel`: a copy of a network that a method changes with each batch.

    The name of the method and options other than the defaults are part of its name; all options are part of
    its digest.
    """

    def __init__(self, network: Network, name: str, method: Any) -> None:
        own = network.spec
        changed = [
            f"{field.name}{getattr(method, field.name):g}"
            if isinstance(field.default, float | int)
            else str(getattr(method, field.name))
            for field in fields(method)
            if getattr(method, field.name) != field.default
        ]
        details = {**(own.details or {}), "adaptation": {"method": name, "version": 1, **asdict(method)}}
        self.spec: ModelSpec = replace(own, name="-".join([f"{own.name}+{name}", *changed]), details=details)
        self.method = method
        self.passes = [0, 0]
        """Number of images that were run forward and backward since they were last set to 0."""
        self._network = network
        self._source: Mapping[str, Any] = {}
        self._seen = b""
        self.reset()

    @property
    def device(self) -> str:
        """The device of the network."""
        return self._network.device

    @property
    def source_images(self) -> int:
        """Number of clean images that the method uses before a stream."""
        return int(getattr(self.method, "fisher_size", 0))

    def use_source_images(self, images: Bytes) -> None:
        """Give the method clean images, and reset the model; the same images have no effect."""
        seen = hashlib.sha256(images.tobytes()).digest()
        if seen != self._seen:
            before, self._source = list(self.passes), {}
            self.reset()
            self._source, self._seen = self.method.prepare(self._learner, self._pixels(images)), seen
            self.passes[:] = before
            self.reset()

    def reset(self) -> None:
        """Return to the source model."""
        from beaufort.models.adaptation.learner import Learner

        module = copy.deepcopy(self._network.module)
        self._learner = Learner(module, self._forward, self.passes)
        self.method.start(self._learner, self._source)

    def adapt(self, images: Bytes) -> Logits:
        """Return float32 logits of a batch, and adapt to it."""
        images = on_host(checked_pixels(images, "a model scales the values itself"))
        return self._adapt(images)

    __call__ = adapt

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays that change."""
        return {**self._learner.state(), _PASSES: np.array(self.passes, np.int64)}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state of this model."""
        self.reset()
        self._learner.load_state({name: value for name, value in state.items() if name != _PASSES})
        self.passes[:] = state[_PASSES].tolist()

    def _adapt(self, images: Bytes) -> Logits:
        import torch

        deterministic = torch.backends.cudnn.flags(
            enabled=True, benchmark=False, deterministic=True, allow_tf32=False
        )
        with deterministic, torch.enable_grad():
            logits = self.method.adapt(self._learner, self._pixels(images))
        return np.asarray(logits.detach().float().cpu().numpy())

    def _pixels(self, images: Bytes) -> Any:
        return self._network.pixels(images)

    def _forward(self, module: Any, pixels: Any) -> Any:
        from beaufort.models.tensors import preprocess_pixels
        from beaufort.models.torch import logits_of

        return logits_of(module(preprocess_pixels(pixels, self._network.spec.preprocessing)))

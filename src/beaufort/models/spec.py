"""The interface of models: their description, images in, logits out; errors, and digests of weights."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.text import encodable, without_secrets
from beaufort.models.preprocessing import Preprocessing

Logits: TypeAlias = NDArray[np.float32]
"""`(n, classes)`; the largest value of a row is the predicted class."""

UNKNOWN = "unknown"
"""Digest of a model whose weights cannot be identified; its results are never reused."""


class ModelError(BeaufortError, RuntimeError):
    """A model cannot be loaded as requested, or returns something other than logits."""


class ModelFileError(BeaufortError, OSError):
    """A model file cannot be read, or is not safe to read."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """The name of a model, and everything that can change its predictions."""

    name: str
    """Name in tables and stores."""
    source: str
    """The argument of `load_model`, without secrets."""
    preprocessing: Preprocessing
    classes: int | None
    """Number of logits per image; None if unknown."""
    class_names: tuple[str, ...] | None = None
    label_space: str | None = None
    """`imagenet-1k`, `cifar-10`, `mnist`."""
    weights: str = UNKNOWN
    """`sha256:…` of the parameters, `declared:…` for a version given by the user, or `unknown`."""
    details: Mapping[str, Any] | None = field(default=None, hash=False)
    """Other values that change predictions, as JSON: the architecture, the templates of a prompt."""
    trained_behind: tuple[str, ...] = ()
    """The image filter used in training, as for `load_filter`; not part of the digest."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise OptionError(f"name must be a non-empty string, got {self.name!r:.60}")
        for field_name in ("name", "source"):  # written to stores, tables and pages
            object.__setattr__(self, field_name, encodable(without_secrets(getattr(self, field_name))))
        object.__setattr__(self, "trained_behind", tuple(map(encodable, self.trained_behind)))
        if self.class_names is not None:
            object.__setattr__(self, "class_names", tuple(map(encodable, self.class_names)))
            if self.classes is None:
                object.__setattr__(self, "classes", len(self.class_names))
            if len(self.class_names) != self.classes:
                raise OptionError(f"class_names must have {self.classes} names, got {len(self.class_names)}")

    @property
    def input_size(self) -> tuple[int, int] | None:
        """Height and width of the network's input."""
        return self.preprocessing.size

    @property
    def outcomes(self) -> int:
        """Number of outputs after the classes that stand for replies without a prediction, of chat models."""
        return len((self.details or {}).get("outcomes", ()))

    @property
    def digest(self) -> str:
        """A hash of the weights, the preprocessing and `details`; `unknown` if the weights are.

        Names, paths and versions of libraries do not change it.
        """
        if self.weights == UNKNOWN:
            return UNKNOWN
        parts = {
            "weights": self.weights,
            "preprocessing": self.preprocessing.to_dict(),
            "details": dict(self.details or {}),
        }
        canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def reusable(self) -> bool:
        """Whether stored results can be matched to this model: its digest is known."""
        return self.digest != UNKNOWN

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, as they are stored with results."""
        return {
            "name": self.name,
            "source": self.source,
            "digest": self.digest,
            "weights": self.weights,
            "classes": self.classes,
            "class_names": None if self.class_names is None else list(self.class_names),
            "label_space": self.label_space,
            "preprocessing": self.preprocessing.to_dict(),
            "details": dict(self.details or {}),
            "trained_behind": list(self.trained_behind),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelSpec:
        """Return the spec of a `to_dict`; the digest is recomputed."""
        fields = {key: value for key, value in values.items() if key != "digest"}
        return cls(**{**fields, "preprocessing": Preprocessing.from_dict(fields["preprocessing"])})


@runtime_checkable
class Model(Protocol):
    """A classifier: 8-bit images in, logits out.

    `beaufort.testing.check_model` checks the rest of the contract: predictions do not depend on the time,
    the batch or the order of images. A model that runs on a device has an attribute `device`.
    """

    @property
    def spec(self) -> ModelSpec:
        """Name, preprocessing, classes and digest of the model."""

    def __call__(self, images: Bytes) -> Logits:
        """Return float32 logits `(n, classes)` of uint8 images `(n, h, w, 1 or 3)`."""


@runtime_checkable
class StatefulModel(Model, Protocol):
    """A model that changes while it predicts, as test-time adaptation does; it is evaluated on streams.

    Equal models that get the same batches in the same order after a `reset` return the same logits. Two
    attributes are optional. `passes` is a list of the numbers of images that were run forward and backward.
    A model with `source_images > 0` gets so many clean images by `use_source_images(images)`.
    """

    def reset(self) -> None:
        """Return to the state in which it was loaded."""

    def adapt(self, images: Bytes) -> Logits:
        """Return the logits of a batch, and adapt to it."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays that change."""

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state that `state` returned."""


def digest_of_files(files: Iterable[Path]) -> str:
    """Return the sha256 of one file, or of the names and sha256 of several."""
    digests = []
    for path in files:
        with path.open("rb") as file:
            digests.append((path.name, hashlib.file_digest(file, "sha256").hexdigest()))
    if len(digests) == 1:
        return f"sha256:{digests[0][1]}"
    text = "".join(f"{name}\0{digest}\n" for name, digest in sorted(digests))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def digest_of_tensors(tensors: Mapping[str, Any]) -> str:
    """Return the sha256 of torch tensors by name, independent of order, device and memory format."""
    import torch

    hasher = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        hasher.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        if tensor.numel():
            hasher.update(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))
    return f"sha256:{hasher.hexdigest()}"


def digest_of_layers(module: Any) -> str:
    """Return the sha256 of the repr of a torch module: its layers and their settings."""
    text = re.sub(r"\bat 0x[0-9a-fA-F]+", "", repr(module))  # addresses differ between processes
    return f"sha256:{hashlib.sha256(encodable(text).encode()).hexdigest()}"


def declared_weights(version: str | None) -> str:
    """Return the identity of weights by a version that the user gives; unknown without one."""
    if version is None:
        return UNKNOWN
    if not str(version).strip():
        raise OptionError("version must not be empty; give a string that changes whenever the model does")
    return f"declared:{version}"

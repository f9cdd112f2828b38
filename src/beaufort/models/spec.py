"""What a model is: a spec, and images in, logits out; its errors, and what identifies its parameters."""

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
"""`(n, classes)`; any numbers of which the largest stands for the predicted class."""

UNKNOWN = "unknown"
"""Digest of a model whose weights cannot be identified; its results are never reused."""


class ModelError(BeaufortError, RuntimeError):
    """A model that cannot be loaded as asked, or that returns something other than logits."""


class ModelFileError(BeaufortError, OSError):
    """A file that cannot be read, or should not be, as the model it claims to be."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """Everything about a model that can change its answers, and what to call it."""

    name: str
    """Name in tables and stores."""
    source: str
    """What `load_model` was given, without secrets."""
    preprocessing: Preprocessing
    classes: int | None
    """Number of logits for an image; None if unknown."""
    class_names: tuple[str, ...] | None = None
    label_space: str | None = None
    """What the classes are: `imagenet-1k`, `cifar-10`, `mnist`."""
    weights: str = UNKNOWN
    """`sha256:…` of the parameters, `declared:…` where a person vouches for a version, or `unknown`."""
    details: Mapping[str, Any] | None = field(default=None, hash=False)
    """What else the answers depend on, as JSON knows it: the architecture, the templates of a prompt."""
    trained_behind: tuple[str, ...] = ()
    """The image filter of its training, as `load_filter` takes it; no part of the digest."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise OptionError(f"the name of a model must be a non-empty string, got {self.name!r:.60}")
        for field_name in ("name", "source"):  # they are written to stores, tables and pages
            object.__setattr__(self, field_name, encodable(without_secrets(getattr(self, field_name))))
        object.__setattr__(self, "trained_behind", tuple(map(encodable, self.trained_behind)))
        if self.class_names is not None:
            object.__setattr__(self, "class_names", tuple(map(encodable, self.class_names)))
            if self.classes is None:
                object.__setattr__(self, "classes", len(self.class_names))
            if len(self.class_names) != self.classes:
                raise OptionError(
                    f"class_names must have {self.classes} entries, one per class, got "
                    f"{len(self.class_names)}"
                )

    @property
    def input_size(self) -> tuple[int, int] | None:
        """Height and width of the network's input."""
        return self.preprocessing.size

    @property
    def digest(self) -> str:
        """A hash that changes with any weight, the preprocessing and anything in `details`.

        Names, paths and versions of libraries stay out of it. It is `unknown` where the weights are.
        """
        if self.weights == UNKNOWN:
            return UNKNOWN
        parts = {
            "weights": self.weights,
            "preprocessing": self.preprocessing.to_dict(),
            "details": dict(self.details or {}),
        }
        return "sha256:" + hashlib.sha256(canonical(parts)).hexdigest()

    @property
    def reusable(self) -> bool:
        """Whether stored results can be matched to this model: its digest is known."""
        return self.digest != UNKNOWN

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON, as they are stored with results."""
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
        """The opposite of `to_dict`; the digest is computed anew."""
        given = {key: value for key, value in values.items() if key != "digest"}
        given["preprocessing"] = Preprocessing.from_dict(given["preprocessing"])
        return cls(**given)


@runtime_checkable
class Model(Protocol):
    """A classifier: 8-bit images in, logits out.

    It also has a `device` where that means something. `beaufort.testing.check_model` says whether
    something keeps the rest of the promise: the same answer every time, in any company, in any order.
    """

    @property
    def spec(self) -> ModelSpec:
        """Name, preprocessing, classes and digest of the model."""

    def __call__(self, images: Bytes) -> Logits:
        """Float32 logits `(n, classes)` of uint8 images `(n, h, w, 1 or 3)`, which it leaves alone."""


def canonical(value: Any) -> bytes:
    """Canonical JSON: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def digest_of_files(files: Iterable[Path]) -> str:
    """The sha256 of one file, or of the names and sha256 of several."""
    found = []
    for file in files:
        with file.open("rb") as opened:
            found.append((file.name, hashlib.file_digest(opened, "sha256").hexdigest()))
    if len(found) == 1:
        return f"sha256:{found[0][1]}"
    together = "".join(f"{name}\0{digest}\n" for name, digest in sorted(found))
    return f"sha256:{hashlib.sha256(together.encode()).hexdigest()}"


def digest_of_tensors(tensors: Mapping[str, Any]) -> str:
    """The sha256 of torch tensors by name: order, device and memory format do not matter."""
    import torch

    whole = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        whole.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        if tensor.numel():
            whole.update(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))
    return f"sha256:{whole.hexdigest()}"


def digest_of_layers(module: Any) -> str:
    """The sha256 of what a torch module prints: its layers and their settings, which no weight tells."""
    printed = re.sub(r"\bat 0x[0-9a-fA-F]+", "", repr(module))  # another address in every process
    return f"sha256:{hashlib.sha256(encodable(printed).encode()).hexdigest()}"


def declared_weights(version: str | None) -> str:
    """The identity that a person vouches for; unknown if nobody does."""
    if version is None:
        return UNKNOWN
    if not str(version).strip():
        raise OptionError("version must not be empty; give a string that changes whenever the model does")
    return f"declared:{version}"

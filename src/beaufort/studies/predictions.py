"""Predictions of a study's networks: computing them, and the files that store them."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError
from beaufort._core.files import write_bytes
from beaufort.data import load_dataset

if TYPE_CHECKING:
    from torch import Tensor, nn

_DAMAGE = (
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Errors from reading a truncated or damaged file."""


@dataclass(frozen=True, eq=False)
class StudyPredictions:
    """Predictions of one network."""

    conditions: tuple[str, ...]
    predicted: NDArray[np.uint8]
    """Classes, `(conditions, images)`."""
    labels: NDArray[np.uint8]
    facts: dict[str, Any]
    """Recipe, seed, device, seconds and the like."""

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether predictions are correct, `(conditions, images)`."""
        correct: NDArray[np.bool_] = self.predicted == self.labels
        return correct

    def row(self, condition: str) -> NDArray[np.bool_]:
        """Return whether each image is classified correctly under a condition."""
        correct: NDArray[np.bool_] = self.correct[self.conditions.index(condition)]
        return correct


def correct_only(
    conditions: Iterable[str], correct: NDArray[np.uint8], facts: dict[str, Any]
) -> StudyPredictions:
    """Return predictions of which only correct (1) or wrong (0) is known, `(conditions, images)`."""
    return StudyPredictions(tuple(conditions), correct, np.ones(correct.shape[1], np.uint8), facts)


def write_predictions(path: Path, predictions: StudyPredictions) -> None:
    """Write predictions to a file atomically."""
    buffer = io.BytesIO()
    about = json.dumps({"conditions": list(predictions.conditions), **predictions.facts})
    arrays = {"predicted": predictions.predicted, "labels": predictions.labels}
    if (predictions.labels == 1).all() and (predictions.predicted <= 1).all():
        # only correct or wrong; the conditions of an image are alike, so this order compresses best
        arrays = {"bits": np.packbits(predictions.predicted.T, axis=1)}
    np.savez_compressed(buffer, **arrays, about=np.frombuffer(about.encode(), np.uint8))  # type: ignore[arg-type]
    write_bytes(path, buffer.getvalue())


@contextmanager
def open_arrays(path: Path, what: str) -> Iterator[Any]:
    """Open an `.npz` file that a study wrote."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            yield file
    except _DAMAGE as error:
        cause = str(error) or type(error).__name__
        raise ImageFileError(
            f"cannot read {what} from {path}: {cause}; delete the file to create it again"
        ) from None


def read_predictions(path: Path) -> StudyPredictions:
    """Read predictions from a file."""
    with open_arrays(path, "predictions") as file:
        about = json.loads(bytes(file["about"]))
        conditions = tuple(about.pop("conditions"))
        if "bits" not in file:
            return StudyPredictions(conditions, file["predicted"], file["labels"], about)
        correct = np.unpackbits(file["bits"], axis=1, count=len(conditions))
        return correct_only(conditions, correct.T, about)


def machine_facts(predictions: Iterable[StudyPredictions]) -> dict[str, str]:
    """Return the hardware and the torch versions of training runs, for a page."""
    facts = [one.facts for one in predictions]
    return {
        key: ", ".join(sorted({one[name] for one in facts}))
        for key, name in (("hardware", "device"), ("torch", "torch"))
    }


class TestImages(NamedTuple):
    """A test set."""

    images: Tensor
    """uint8 `(n, c, h, w)`, on the device."""
    labels: Tensor
    ids: list[str]


class CorruptedImages(NamedTuple):
    """A test set under several conditions, on the device."""

    images: dict[str, Tensor]
    """uint8 `(n, c, h, w)` by condition."""
    labels: Tensor


def read_test_images(data: str, *, device: str, limit: int | None = None) -> TestImages:
    """Read a dataset whose images have one size, or its first images."""
    import torch

    from beaufort.models.torch import choose_device

    where = choose_device(device)
    dataset = load_dataset(data, limit=limit)
    pixels = np.stack([dataset[index].image for index in range(len(dataset))])
    images = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).to(where)
    return TestImages(images, torch.from_numpy(np.array(dataset.labels)).to(where), list(dataset.ids))


def logits(model: nn.Module, images: Tensor, *, batch: int | None = None, half: bool = False) -> Tensor:
    """Return the logits of a network for images on its device, deterministically.

    Args:
        model: network in float32.
        images: uint8 `(n, c, h, w)`.
        batch: batch size.
        half: whether a GPU may compute in float16, which is several times as fast.
    """
    import torch

    size = batch or (2500 if images.device.type == "cuda" else 250)
    exact = torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
    short = torch.autocast("cuda", torch.float16, enabled=half and images.device.type == "cuda")
    with torch.no_grad(), exact, short:
        return torch.cat([model(some.float() / 255).float() for some in images.split(size)])

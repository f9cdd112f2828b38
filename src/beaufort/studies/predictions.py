"""The predictions of a study's networks: how they are made, and the files that keep them."""

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
    *(OSError, EOFError, zipfile.BadZipFile, zlib.error),
    *(AttributeError, KeyError, TypeError, ValueError),
)
"""What reading a file raises that is cut, damaged or of another kind."""

_BATCH, _GPU_BATCH = 250, 2500
"""Images that are evaluated at once, on the CPU and on a GPU."""


@dataclass(frozen=True, eq=False)
class StudyPredictions:
    """The predictions of one network."""

    conditions: tuple[str, ...]
    predicted: NDArray[np.uint8]
    """`(conditions, images)`."""
    labels: NDArray[np.uint8]
    facts: dict[str, Any]
    """Recipe, seed, device and seconds."""

    @property
    def correct(self) -> NDArray[np.bool_]:
        """`(conditions, images)`."""
        found: NDArray[np.bool_] = self.predicted == self.labels
        return found

    @property
    def bits(self) -> bool:
        """Whether only correct (1) and wrong (0) are known, not classes."""
        return bool((self.labels == 1).all() and (self.predicted <= 1).all())

    def row(self, condition: str) -> NDArray[np.bool_]:
        """Return which images are classified correctly under a condition."""
        found: NDArray[np.bool_] = self.correct[self.conditions.index(condition)]
        return found


def correct_only(
    conditions: Iterable[str], correct: NDArray[np.uint8], facts: dict[str, Any]
) -> StudyPredictions:
    """Return predictions of which only correct (1) and wrong (0) are kept, `(conditions, images)`."""
    return StudyPredictions(tuple(conditions), correct, np.ones(correct.shape[1], np.uint8), facts)


def write_predictions(path: Path, predictions: StudyPredictions) -> None:
    """Write predictions to a file, whole or not at all."""
    buffer = io.BytesIO()
    about = json.dumps({"conditions": list(predictions.conditions), **predictions.facts})
    arrays = {"predicted": predictions.predicted, "labels": predictions.labels}
    if predictions.bits:  # an image's conditions side by side: they are alike, which compresses best
        arrays = {"bits": np.packbits(predictions.predicted.T, axis=1)}
    np.savez_compressed(buffer, **arrays, about=np.frombuffer(about.encode(), np.uint8))  # type: ignore[arg-type]
    write_bytes(path, buffer.getvalue())


@contextmanager
def open_arrays(path: Path, what: str) -> Iterator[Any]:
    """Open the arrays of a file that a study made, by name."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            yield file
    except _DAMAGE as error:
        cause = str(error) or type(error).__name__
        raise ImageFileError(
            f"{path} cannot be read as {what} ({cause}); delete it to make it anew"
        ) from None


def read_predictions(path: Path) -> StudyPredictions:
    """Read predictions from their file."""
    with open_arrays(path, "answers") as file:
        about = json.loads(bytes(file["about"]))
        conditions = tuple(about.pop("conditions"))
        if "bits" not in file:
            return StudyPredictions(conditions, file["predicted"], file["labels"], about)
        correct = np.unpackbits(file["bits"], axis=1, count=len(conditions))
        return correct_only(conditions, correct.T, about)


def predictions_by_seed(folder: Path) -> dict[str, list[StudyPredictions]]:
    """Read the files `NAME-seedN.npz` of a folder by name, in the order of names and of seeds."""
    found: dict[str, dict[int, StudyPredictions]] = {}
    for path in sorted(folder.glob("*-seed*.npz")):
        name, _, seed = path.stem.rpartition("-seed")
        if seed.isdecimal():
            found.setdefault(name, {})[int(seed)] = read_predictions(path)
    return {name: [by[seed] for seed in sorted(by)] for name, by in found.items()}


def machine_facts(predictions: Iterable[StudyPredictions]) -> dict[str, str]:
    """Return what the networks were trained on and with, for a page."""
    every = list(predictions)
    return {
        "hardware": ", ".join(sorted({one.facts["device"] for one in every})),
        "torch": ", ".join(sorted({one.facts["torch"] for one in every})),
    }


class TestImages(NamedTuple):
    """A whole test set."""

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
    """Read the images that `load_dataset` opens, or the first of them, which must have one size."""
    import torch

    from beaufort.models.torch import choose_device

    where = choose_device(device)
    dataset = load_dataset(data, limit=limit)
    pixels = np.stack([dataset[place].image for place in range(len(dataset))])
    images = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).to(where)
    return TestImages(images, torch.from_numpy(np.array(dataset.labels)).to(where), list(dataset.ids))


def logits(model: nn.Module, images: Tensor, *, batch: int | None = None, half: bool = False) -> Tensor:
    """Return the logits of a network for images on its device; the same every time.

    Args:
        model: the network, in float32.
        images: uint8 `(n, c, h, w)`.
        batch: images that are evaluated at once.
        half: whether a GPU may multiply and store in float16, which is several times as fast.
    """
    import torch

    size = batch or (_GPU_BATCH if images.device.type == "cuda" else _BATCH)
    exact = torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
    short = torch.autocast("cuda", torch.float16, enabled=half and images.device.type == "cuda")
    with torch.no_grad(), exact, short:
        return torch.cat([model(some.float() / 255).float() for some in images.split(size)])

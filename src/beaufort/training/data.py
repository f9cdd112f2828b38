"""Training data: images in memory, on a device, or decoded when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import ImageFileError, ImageValueError, OptionError
from beaufort._core.optional import require
from beaufort._core.text import counted
from beaufort.data import Content, Dataset, Problem, Sample, digest_of, iterate, load_dataset

if TYPE_CHECKING:
    from torch import Tensor

_MEMORY = 2 << 30
"""Bytes of images up to which a dataset is kept in memory."""

_SAMPLED = 256
"""Number of images that identify a dataset that is not kept in memory, with its ids and labels."""

_THREADS = 8
_MAX_LISTED = 20


class TrainingBlock(NamedTuple):
    """Images on the device of the training run."""

    images: Tensor
    """uint8 `(n, c, h, w)`."""
    labels: Tensor
    """int64 `(n,)`."""
    places: list[int]
    """Their positions in the dataset, which identify them."""


class TrainingData(Protocol):
    """Labeled images by position. Any object with these members can be trained on."""

    @property
    def name(self) -> str: ...

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of every image."""

    @property
    def digest(self) -> str:
        """Identifies the data; empty if unknown."""

    def __len__(self) -> int: ...

    def read(self, places: NDArray[np.int64], device: str) -> TrainingBlock:
        """Return the images at some positions, on a device."""


@dataclass(eq=False)
class TrainingTensors:
    """Images in one tensor, moved to the device when they are first read."""

    name: str
    classes: tuple[str, ...]
    images: Any
    """uint8 tensor `(n, c, h, w)`."""
    labels: Any
    """int64 tensor `(n,)`."""
    digest: str = ""

    def __post_init__(self) -> None:
        check_block(self.name, self.images, self.labels, len(self.classes))

    def __len__(self) -> int:
        return len(self.images)

    @property
    def shape(self) -> tuple[int, int, int]:
        channels, height, width = self.images.shape[1:]
        return channels, height, width

    def read(self, places: NDArray[np.int64], device: str) -> TrainingBlock:
        if str(self.images.device) != device:
            self.images, self.labels = self.images.to(device), self.labels.to(device)
        torch = require("torch", "training", what="training runs")
        index = torch.from_numpy(places).to(device)
        return TrainingBlock(self.images[index], self.labels[index], places.tolist())

    def first(self, count: int | None) -> TrainingTensors:
        """Return the first `count` images; all if None."""
        if count is None:
            return self
        return TrainingTensors(self.name, self.classes, self.images[:count], self.labels[:count], self.digest)


@dataclass(frozen=True, eq=False)
class DecodedData:
    """A dataset that does not fit into memory; images are decoded by threads when they are read."""

    dataset: Dataset
    shape: tuple[int, int, int]

    @property
    def name(self) -> str:
        return self.dataset.name

    @property
    def classes(self) -> tuple[str, ...]:
        return self.dataset.classes

    @cached_property
    def digest(self) -> str:
        """Digest of the classes, ids, labels, shape, and 256 images spread evenly over the dataset.

        Reading all images would take as long as an epoch, so changes of other images are not detected.
        """
        places = np.unique(np.linspace(0, len(self) - 1, min(len(self), _SAMPLED)).round().astype(np.int64))
        contents = [Content(lambda: [str(self.shape).encode()])]
        contents += [Content(lambda place=place: [self._bytes(place)]) for place in places.tolist()]  # type: ignore[misc]
        found = digest_of(self.classes, self.dataset.ids, self.dataset.labels, contents)
        return f"sample:{found}"

    def _bytes(self, place: int) -> bytes:
        return _image(self.dataset, place, self.shape).tobytes()

    def __len__(self) -> int:
        return len(self.dataset)

    def read(self, places: NDArray[np.int64], device: str) -> TrainingBlock:
        torch = require("torch", "training", what="training runs")
        with ThreadPoolExecutor(_THREADS) as pool:
            images = list(pool.map(lambda place: _image(self.dataset, int(place), self.shape), places))
        labels = torch.from_numpy(self.dataset.labels[places])
        return TrainingBlock(
            torch.from_numpy(np.stack(images)).to(device), labels.to(device), places.tolist()
        )


def check_block(name: str, images: Any, labels: Any, classes: int) -> None:
    """Check dtype, shape and labels; float images would be scaled by 1/255 once more.

    Args:
        name: name of the data, for messages.
        images: uint8 tensor `(n, c, h, w)`.
        labels: int64 tensor `(n,)`.
        classes: number of classes.
    """
    torch = require("torch", "training", what="training runs")
    for what, found, kind, shape, dimensions in (
        ("images", images, torch.uint8, "(n, c, h, w)", 4),
        ("labels", labels, torch.int64, "(n,)", 1),
    ):
        if not torch.is_tensor(found) or found.dtype != kind or found.ndim != dimensions:
            got = f"{getattr(found, 'dtype', type(found).__name__)} {tuple(getattr(found, 'shape', ()))}"
            raise OptionError(f"{what} of {name} must be a {kind} tensor {shape}, got {got}")
    if len(images) != len(labels):
        raise OptionError(f"{name} has {len(labels)} labels for {len(images)} images")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise OptionError(
            f"labels of {name} must be 0 to {classes - 1}, got {int(labels.min())} to {int(labels.max())}"
        )


def open_training_data(spec: str | Dataset, *, limit: int | None = None) -> TrainingData:
    """Return the images of a dataset, in memory if they fit; all must have the same size.

    Unreadable images raise an error; those of a dataset that does not fit into memory, when they are read.

    Args:
        spec: a dataset, or a text for `load_dataset`.
        limit: use only the first images.
    """
    dataset = load_dataset(spec, limit=limit) if isinstance(spec, str) else spec.first(limit)
    if len(dataset) == 0:
        raise OptionError(f"{dataset.name} has no images to train on")
    first = next((sample for sample in iterate(dataset) if isinstance(sample, Sample)), None)
    height, width, channels = (0, 0, 0) if first is None else first.image.shape
    shape = (channels, height, width)
    if len(dataset) * channels * height * width > _MEMORY:
        _check_all_read(dataset, ())
        return DecodedData(dataset, shape)
    torch = require("torch", "training", what="training runs")
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda place: _image_or_problem(dataset, place, shape), range(len(dataset))))
    _check_all_read(dataset, [one for one in found if isinstance(one, Problem)])
    images = [one for one in found if not isinstance(one, Problem)]
    labels = torch.from_numpy(np.array(dataset.labels))
    return TrainingTensors(
        dataset.name, dataset.classes, torch.from_numpy(np.stack(images)), labels, dataset.digest()
    )


def _check_all_read(dataset: Dataset, unread: Sequence[Problem]) -> None:
    problems = [*dataset.problems, *unread]
    if problems:
        lines = [f"  {id}: {message}" for id, message in problems[:_MAX_LISTED]]
        lines += [f"  and {len(problems) - _MAX_LISTED} more"] if len(problems) > _MAX_LISTED else []
        number = counted(len(problems), "unreadable image")
        raise ImageFileError("\n".join([f"{dataset.name} has {number}; fix or remove:", *lines]))


def _image_or_problem(
    dataset: Dataset, place: int, shape: tuple[int, int, int]
) -> NDArray[np.uint8] | Problem:
    try:
        return _image(dataset, place, shape)
    except ImageFileError as error:
        return Problem(dataset.ids[place], str(error))


def _image(dataset: Dataset, place: int, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    sample = dataset[place]
    image = np.ascontiguousarray(sample.image.transpose(2, 0, 1))
    if image.shape != shape:
        raise ImageValueError(
            f"training images must have the same size, got {image.shape} for {sample.id} and {shape} for "
            f"{dataset.ids[0]}; resize them with --side (in Python: beaufort.data.resized)"
        )
    return image

"""What a training reads: images by number, in memory, on a device or decoded when they are needed."""

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
"""Bytes of images up to which a data set is held in memory."""

_SAMPLED = 256
"""Pictures that identify a data set that is not held in memory, beside its ids and labels."""

_THREADS = 8
_TOLD = 20
"""Pictures that cannot be read that an error names."""


class TrainingBlock(NamedTuple):
    """Some images on the training's device."""

    images: Tensor
    """uint8 `(n, c, h, w)`."""
    labels: Tensor
    """int64 `(n,)`."""
    places: list[int]
    """Their numbers in the data set, which identify them."""


class TrainingData(Protocol):
    """Labeled images by number. Anything with these members can be trained on."""

    @property
    def name(self) -> str: ...

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of every image."""

    @property
    def digest(self) -> str:
        """What identifies the data; empty if it is not known."""

    def __len__(self) -> int: ...

    def read(self, places: NDArray[np.int64], device: str) -> TrainingBlock:
        """The images of some numbers, on a device."""


@dataclass(eq=False)
class TrainingTensors:
    """Images in one tensor, copied to the device when they are first read."""

    name: str
    classes: tuple[str, ...]
    images: Any
    """uint8 tensor `(n, c, h, w)`."""
    labels: Any
    """int64 tensor `(n,)`, numbers of classes."""
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
        torch = require("torch", "training", what="trainings")
        index = torch.from_numpy(places).to(device)
        return TrainingBlock(self.images[index], self.labels[index], places.tolist())

    def first(self, count: int | None) -> TrainingTensors:
        """The first so many images; all if None."""
        if count is None:
            return self
        return TrainingTensors(self.name, self.classes, self.images[:count], self.labels[:count], self.digest)


@dataclass(frozen=True, eq=False)
class DecodedData:
    """Images of a data set that does not fit into memory, decoded by threads when they are read."""

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
        """Of the classes, every id and label, the shape, and 256 pictures spread evenly over the data.

        To read all pictures would take as long as an epoch. A change that leaves these 256 as they are, and
        all ids and labels, is not seen.
        """
        places = np.unique(np.linspace(0, len(self) - 1, min(len(self), _SAMPLED)).round().astype(np.int64))
        contents = [Content(lambda: [str(self.shape).encode()])]
        contents += [Content(lambda place=place: [self._bytes(place)]) for place in places.tolist()]  # type: ignore[misc]
        found = digest_of(self.classes, self.dataset.ids, self.dataset.labels, contents)
        return f"sample:{found}"

    def _bytes(self, place: int) -> bytes:
        return _picture(self.dataset, place, self.shape).tobytes()

    def __len__(self) -> int:
        return len(self.dataset)

    def read(self, places: NDArray[np.int64], device: str) -> TrainingBlock:
        torch = require("torch", "training", what="trainings")
        with ThreadPoolExecutor(_THREADS) as pool:
            images = list(pool.map(lambda place: _picture(self.dataset, int(place), self.shape), places))
        labels = torch.from_numpy(self.dataset.labels[places])
        return TrainingBlock(
            torch.from_numpy(np.stack(images)).to(device), labels.to(device), places.tolist()
        )


def check_block(name: str, images: Any, labels: Any, classes: int) -> None:
    """Refuse what cannot be learned from: floats, of which 1 would be taken for 1/255, or labels of no class.

    Args:
        name: of the data.
        images: must be a uint8 tensor `(n, c, h, w)`.
        labels: must be an int64 tensor `(n,)`.
        classes: how many there are.
    """
    torch = require("torch", "training", what="trainings")
    for what, found, kind, shape, dimensions in (
        ("images", images, torch.uint8, "(n, c, h, w)", 4),
        ("labels", labels, torch.int64, "(n,)", 1),
    ):
        if not torch.is_tensor(found) or found.dtype != kind or found.ndim != dimensions:
            got = f"{getattr(found, 'dtype', type(found).__name__)} {tuple(getattr(found, 'shape', ()))}"
            raise OptionError(f"the {what} of {name} must be a tensor {shape} of {kind}, got {got}")
    if len(images) != len(labels):
        raise OptionError(f"{name} must have a label for each image, got {len(labels)} for {len(images)}")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise OptionError(
            f"the labels of {name} must be from 0 to {classes - 1}, as it has "
            f"{counted(classes, 'class', 'classes')}, got {int(labels.min())} to {int(labels.max())}"
        )


def open_training_data(spec: str | Dataset, *, limit: int | None = None) -> TrainingData:
    """The images of a data set, in memory if they fit; all must have one size.

    What of it cannot be read is an error that names it: a training on the rest would be another one. Images
    that are not held in memory are seen to be broken when they are read.

    Args:
        spec: what `load_dataset` opens, or an open data set.
        limit: only the first so many images.
    """
    dataset = load_dataset(spec, limit=limit) if isinstance(spec, str) else spec.first(limit)
    if len(dataset) == 0:
        raise OptionError(f"{dataset.name} must have images to train on, got none")
    first = next((sample for sample in iterate(dataset) if isinstance(sample, Sample)), None)
    height, width, channels = (0, 0, 0) if first is None else first.image.shape
    shape = (channels, height, width)
    if len(dataset) * channels * height * width > _MEMORY:
        _check_all_read(dataset, ())
        return DecodedData(dataset, shape)
    torch = require("torch", "training", what="trainings")
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda place: _picture_or_problem(dataset, place, shape), range(len(dataset))))
    _check_all_read(dataset, [one for one in found if isinstance(one, Problem)])
    images = [one for one in found if not isinstance(one, Problem)]
    labels = torch.from_numpy(np.array(dataset.labels))
    return TrainingTensors(
        dataset.name, dataset.classes, torch.from_numpy(np.stack(images)), labels, dataset.digest()
    )


def _check_all_read(dataset: Dataset, unread: Sequence[Problem]) -> None:
    problems = [*dataset.problems, *unread]
    if problems:
        told = "".join(f"\n  {id}: {message}" for id, message in problems[:_TOLD])
        more = f"\n  and {len(problems) - _TOLD} more" if len(problems) > _TOLD else ""
        raise ImageFileError(
            f"all pictures of {dataset.name} must be readable to be trained on, got "
            f"{counted(len(problems), 'problem')}; mend them or take them away:{told}{more}"
        )


def _picture_or_problem(
    dataset: Dataset, place: int, shape: tuple[int, int, int]
) -> NDArray[np.uint8] | Problem:
    try:
        return _picture(dataset, place, shape)
    except ImageFileError as error:
        return Problem(dataset.ids[place], str(error))


def _picture(dataset: Dataset, place: int, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    sample = dataset[place]
    image = np.ascontiguousarray(sample.image.transpose(2, 0, 1))
    if image.shape != shape:
        raise ImageValueError(
            "the images of a training must have one number of channels, height and width, got "
            f"{image.shape} for {sample.id} and {shape} for {dataset.ids[0]}; `resized` (--side 32) brings "
            "them to squares in color"
        )
    return image

"""The data sets that are published as arrays: MNIST-C, CIFAR-10-C and CIFAR-100-C.

An array is written from front to back in chunks, so memory holds one chunk, and a full disk is an error
like any other (writing through a memory map would end the process).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes
from beaufort._core.catalog import entries
from beaufort._core.errors import AssetError, ImageFileError, OptionError
from beaufort._core.files import draft, remove_leftovers
from beaufort.corruptions import SEVERITIES, Chain, corruptions, is_chain
from beaufort.data import Dataset, dataset_kind, load_dataset
from beaufort.data._load import parse_spec
from beaufort.data.mnist import splits_in
from beaufort.data.writers.image_sources import check_apart
from beaufort.data.writers.output_folder import Failure, Outcome, Progress, claim_folder, stop_reason
from beaufort.data.writers.variants import variants

IDENTITY = "identity"
"""The clean pictures, which MNIST-C has among its corruptions."""

_CHUNK = 2048
_SHALLOW = ("cifar", "cifar-100-coarse", "mnist", "npy")
"""Kinds of data sets that are files of fixed names in a folder, whatever lies in folders below it."""
_CLASSES = {"cifar10-c": 10, "cifar10-c-bar": 10, "cifar10-p": 10, "cifar100-c": 100}


@dataclass(frozen=True)
class CleanImages:
    """The pictures of a data set in memory `(n, h, w, c)`, with their ids and labels."""

    images: Bytes
    labels: NDArray[np.int64]
    ids: Sequence[str]


@dataclass(frozen=True)
class ArrayFile:
    """A file to make: its shape, and its rows in chunks."""

    path: Path
    corruption: str | None
    """What its rows are corrupted with; None if they are not pictures, or clean ones."""
    dtype: type
    shape: tuple[int, ...]
    chunks: Callable[[], Iterator[NDArray[Any]]]


def make_mnist(request: Request) -> Outcome:
    """`output/<corruption>/{train,test}_{images,labels}.npy` at the published severities."""
    _check_mnist_names(request.names)
    _check_apart(request)
    splits = {split: _load(found, request, (28, 28, 1)) for split, found in _mnist_splits(request.source)}
    if full := claim_folder(request.output, request.settings(limit=request.limit), request.names):
        return Outcome(stopped=full)
    arrays = []
    for name in request.names:
        for split, found in splits.items():
            pixels = partial(_mnist_rows, request, name, found)
            start = request.output / name / split
            arrays += [
                ArrayFile(start.with_name(f"{split}_images.npy"), name, np.uint8, found.images.shape, pixels),
                labels_file(start.with_name(f"{split}_labels.npy"), found.labels),
            ]
    return write_arrays(arrays, request.progress)


def make_cifar(request: Request) -> Outcome:
    """`output/<corruption>.npy`, all pictures at severity 1, then at 2 and so on; `output/labels.npy`."""
    if chains := [name for name in request.names if is_chain(name)]:
        raise OptionError(
            f"{request.dataset} must be made of single corruptions, because a file of it has five severities "
            f"of one, got the chain {chains[0]!r}; `beaufort corrupt` writes chains as pictures"
        )
    variants(request.names, SEVERITIES, "cifar")
    test = load_cifar(request)
    if full := claim_folder(request.output, request.settings(limit=request.limit), request.names):
        return Outcome(stopped=full)
    shape = (len(SEVERITIES) * len(test.images), *test.images.shape[1:])
    arrays = [
        labels_file(request.output / "labels.npy", np.tile(test.labels.astype(np.uint8), len(SEVERITIES)))
    ]
    for name in request.names:
        pixels = partial(_cifar_rows, request, name, test)
        arrays.append(ArrayFile(request.output / f"{name}.npy", name, np.uint8, shape, pixels))
    return write_arrays(arrays, request.progress)


def _mnist_rows(request: Request, name: str, clean: CleanImages) -> Iterator[Bytes]:
    for part in _slices(len(clean.images)):
        if name == IDENTITY:
            yield clean.images[part]
        else:
            yield Chain.parse(name)(
                clean.images[part], ids=clean.ids[part], seed=request.seed, scale="mnist", jobs=request.jobs
            )


def _cifar_rows(request: Request, name: str, clean: CleanImages) -> Iterator[Bytes]:
    corruption = corruptions[name]
    for severity in SEVERITIES:
        for part in _slices(len(clean.images)):
            yield corruption(
                clean.images[part],
                severity,
                ids=clean.ids[part],
                seed=request.seed,
                scale="cifar",
                jobs=request.jobs,
            )


def _check_mnist_names(names: Sequence[str]) -> None:
    for name in names:
        for link in () if name == IDENTITY else Chain.parse(name).links:
            corruptions[link.name].params(link.severity, "mnist")


def _check_apart(request: Request) -> None:
    """Refuse an output in the folder of the source that would be a part of that data set from then on."""
    found = parse_spec(request.source)
    if Path(found.location).is_dir():
        check_apart(Path(found.location), request.output, deep=found.kind not in _SHALLOW)


def _mnist_splits(source: str) -> Iterator[tuple[str, Dataset]]:
    """Both of MNIST's splits where a folder has them; of other data sets, what is opened."""
    if dataset_kind(source) == "mnist" and "#" not in source and source not in entries:
        for split in splits_in(Path(source.removeprefix("mnist:"))):
            yield split, load_dataset(f"{source}#{split}")
    else:
        found = load_dataset(source)
        yield "train" if found.ids[0].startswith("train/") else "test", found


def load_cifar(request: Request) -> CleanImages:
    """All pictures of the source, which must be of CIFAR's shape and have its labels."""
    _check_apart(request)
    test = _load(load_dataset(request.source), request, (32, 32, 3))
    if test.labels.max() >= (count := _CLASSES[request.dataset]):
        raise ImageFileError(
            f"labels for {request.dataset} must be from 0 to {count - 1}, got {test.labels.max()} in "
            f"{request.source}; `beaufort ls suites` lists what is published for other classes"
        )
    return test


def _load(dataset: Dataset, request: Request, shape: tuple[int, int, int]) -> CleanImages:
    """All pictures of a data set, which must be of one shape."""
    few = dataset.first(request.limit)
    images = np.empty((len(few), *shape), np.uint8)
    for place, room in enumerate(images):
        image = few[place].image
        if image.shape != shape:
            raise ImageFileError(
                f"pictures for {request.dataset} must have {shape[0]} × {shape[1]} pixels and {shape[2]} "
                f"channels, got {' × '.join(map(str, image.shape))} in {few.ids[place]}"
            )
        room[:] = image
    return CleanImages(images, few.labels, few.ids)


def labels_file(path: Path, labels: NDArray[Any]) -> ArrayFile:
    """The file of labels."""
    return ArrayFile(path, None, labels.dtype.type, labels.shape, lambda: iter([labels]))


def _slices(count: int) -> Iterator[slice]:
    return (slice(start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK))


def write_arrays(arrays: Sequence[ArrayFile], progress: Progress | None) -> Outcome:
    """Write each array that is missing; progress is counted in rows."""
    for folder in {array.path.parent for array in arrays}:
        remove_leftovers(folder)
    tell = progress or (lambda _done, _total: None)
    total = sum(array.shape[0] for array in arrays)
    before = done = skipped = 0
    unavailable: dict[str, str] = {}
    for array in arrays:
        if array.path.exists():
            skipped += 1
        elif array.corruption not in unavailable:
            try:
                _write(array, lambda rows, before=before: tell(before + rows, total))  # type: ignore[misc]
                done += 1
            except AssetError as error:
                unavailable[array.corruption or ""] = str(error)
            except OSError as error:
                if reason := stop_reason(array.path, error):
                    return Outcome(done, skipped, _failures(unavailable), stopped=reason)
                raise OptionError(f"{array.path} cannot be written ({error.strerror or error})") from None
        before += array.shape[0]
        tell(before, total)
    return Outcome(done, skipped, _failures(unavailable))


def _write(array: ArrayFile, tell: Callable[[int], None]) -> None:
    """Write a .npy file; `tell` hears how many rows it has after each chunk."""
    descr = np.lib.format.dtype_to_descr(np.dtype(array.dtype))
    rows = 0
    with draft(array.path) as file:
        header = {"descr": descr, "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in array.chunks():
            file.write(np.ascontiguousarray(chunk).data)
            tell(rows := rows + len(chunk))


def _failures(unavailable: Mapping[str, str]) -> tuple[Failure, ...]:
    return tuple(Failure(name, message) for name, message in sorted(unavailable.items()))


@dataclass(frozen=True)
class Request:
    """The arguments of `make_dataset`, checked."""

    dataset: str
    source: str
    """A text for `load_dataset`."""
    output: Path
    names: tuple[str, ...]
    seed: int
    limit: int | None
    jobs: int
    progress: Progress | None

    def settings(self, **more: Any) -> dict[str, Any]:
        """What an output folder must have been made with."""
        return {"command": "make", "dataset": self.dataset, "seed": self.seed, **more}

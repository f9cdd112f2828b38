"""Writers of datasets published as arrays: MNIST-C, CIFAR-10-C and CIFAR-100-C.

Arrays are written sequentially in chunks: memory holds one chunk, and a full disk raises an error, whereas
writing through a memory map would kill the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from beaufort.data import Dataset, dataset_kind, load_dataset, parse_spec
from beaufort.data.mnist import splits_in
from beaufort.data.writers.image_sources import check_apart
from beaufort.data.writers.output_folder import Failure, Outcome, Progress, claim_folder, stop_reason
from beaufort.data.writers.variants import variants

IDENTITY = "identity"
"""The clean images, which MNIST-C has among its corruptions."""

_CHUNK = 2048
_SHALLOW = ("cifar", "cifar-100-coarse", "mnist", "npy")
"""Kinds of datasets with fixed file names in one directory, which ignore its subdirectories."""
_CLASSES = {"cifar10-c": 10, "cifar10-c-bar": 10, "cifar10-p": 10, "cifar100-c": 100}


@dataclass(frozen=True)
class Request:
    """The validated arguments of `make_dataset`."""

    dataset: str
    source: str
    """A dataset spec."""
    output: Path
    names: tuple[str, ...]
    seed: int
    limit: int | None
    jobs: int
    progress: Progress | None

    def claim(self, names: Sequence[str] = (), **more: Any) -> str | None:
        """Claim the output directory for these settings; return the reason if the disk is full."""
        settings = {"command": "make", "dataset": self.dataset, "seed": self.seed, **more}
        return claim_folder(self.output, settings, names)


@dataclass(frozen=True)
class CleanImages:
    """The images of a dataset in memory `(n, h, w, c)`, with their ids and labels."""

    images: Bytes
    labels: NDArray[np.int64]
    ids: Sequence[str]

    def corrupted(self, chain: Chain, request: Request, scale: str) -> Iterator[Bytes]:
        """The corrupted images in chunks."""
        for start in range(0, len(self.images), _CHUNK):
            some = slice(start, start + _CHUNK)
            yield chain(
                self.images[some], ids=self.ids[some], seed=request.seed, scale=scale, jobs=request.jobs
            )


@dataclass(frozen=True)
class ArrayFile:
    """A file to write, with its rows in chunks."""

    path: Path
    corruption: str
    """Corruption of the images; '' for clean images and labels."""
    dtype: type
    shape: tuple[int, ...]
    chunks: Callable[[], Iterator[NDArray[Any]]]

    @classmethod
    def of(cls, path: Path, array: NDArray[Any]) -> ArrayFile:
        """Return the file of an array in memory."""
        return cls(path, "", array.dtype.type, array.shape, lambda: iter([array]))


def make_mnist(request: Request) -> Outcome:
    """Write `output/<corruption>/{train,test}_{images,labels}.npy` at the published severities."""
    chains = {name: Chain.parse(name) for name in request.names if name != IDENTITY}
    for link in (link for chain in chains.values() for link in chain.links):
        corruptions[link.name].params(link.severity, "mnist")
    _check_apart(request)
    splits = {split: _load(found, request, (28, 28, 1)) for split, found in _mnist_splits(request.source)}
    if full := request.claim(request.names, limit=request.limit):
        return Outcome(stopped=full)
    arrays = []
    for name in request.names:
        for split, clean in splits.items():
            images = request.output / name / f"{split}_images.npy"
            if name == IDENTITY:
                arrays.append(ArrayFile.of(images, clean.images))
            else:
                rows = partial(clean.corrupted, chains[name], request, "mnist")
                arrays.append(ArrayFile(images, name, np.uint8, clean.images.shape, rows))
            arrays.append(ArrayFile.of(images.with_name(f"{split}_labels.npy"), clean.labels))
    return write_arrays(arrays, request.progress)


def make_cifar(request: Request) -> Outcome:
    """Write `labels.npy` and `<corruption>.npy`, with all images at severity 1, then at 2, and so on."""
    if chains := [name for name in request.names if is_chain(name)]:
        raise OptionError(
            f"{request.dataset} cannot contain the chain {chains[0]!r}, which has no severities of its own; "
            "`beaufort corrupt` writes chains as images"
        )
    variants(request.names, SEVERITIES, "cifar")
    test = load_cifar(request)
    if full := request.claim(request.names, limit=request.limit):
        return Outcome(stopped=full)
    labels = np.tile(test.labels.astype(np.uint8), len(SEVERITIES))
    shape = (len(SEVERITIES) * len(test.images), *test.images.shape[1:])
    arrays = [ArrayFile.of(request.output / "labels.npy", labels)]
    for name in request.names:
        rows = partial(_all_severities, request, name, test)
        arrays.append(ArrayFile(request.output / f"{name}.npy", name, np.uint8, shape, rows))
    return write_arrays(arrays, request.progress)


def _all_severities(request: Request, name: str, clean: CleanImages) -> Iterator[Bytes]:
    for severity in SEVERITIES:
        yield from clean.corrupted(Chain.of(name, severity), request, "cifar")


def _check_apart(request: Request) -> None:
    """Reject an output inside the source that would become a part of this dataset."""
    found = parse_spec(request.source)
    if Path(found.location).is_dir():
        check_apart(Path(found.location), request.output, deep=found.kind not in _SHALLOW)


def _mnist_splits(source: str) -> Iterator[tuple[str, Dataset]]:
    """Yield both splits of an MNIST directory, or the opened part of other datasets."""
    if dataset_kind(source) == "mnist" and "#" not in source and source not in entries:
        for split in splits_in(Path(source.removeprefix("mnist:"))):
            yield split, load_dataset(f"{source}#{split}")
    else:
        found = load_dataset(source)
        yield "train" if found.ids[0].startswith("train/") else "test", found


def load_cifar(request: Request) -> CleanImages:
    """Load all images of the source, which must have the shape and labels of CIFAR."""
    _check_apart(request)
    test = _load(load_dataset(request.source), request, (32, 32, 3))
    if test.labels.max() >= (count := _CLASSES[request.dataset]):
        raise ImageFileError(
            f"labels for {request.dataset} must be from 0 to {count - 1}, got {test.labels.max()} in "
            f"{request.source}"
        )
    return test


def _load(dataset: Dataset, request: Request, shape: tuple[int, int, int]) -> CleanImages:
    """Load all images of a dataset, which must have one shape."""
    few = dataset.first(request.limit)
    images = np.empty((len(few), *shape), np.uint8)
    for place, room in enumerate(images):
        image = few[place].image
        if image.shape != shape:
            raise ImageFileError(
                f"images for {request.dataset} must have shape {shape}, got {image.shape} in {few.ids[place]}"
            )
        room[:] = image
    return CleanImages(images, few.labels, few.ids)


def write_arrays(arrays: Sequence[ArrayFile], progress: Progress | None) -> Outcome:
    """Write the missing arrays; progress is counted in rows."""
    for folder in {array.path.parent for array in arrays}:
        remove_leftovers(folder)
    report = progress or (lambda _done, _total: None)
    total = sum(array.shape[0] for array in arrays)
    before = done = skipped = 0
    unavailable: dict[str, str] = {}
    stopped = None
    for array in arrays:
        if array.path.exists():
            skipped += 1
        elif array.corruption not in unavailable:
            try:
                _write(array, lambda rows, before=before: report(before + rows, total))  # type: ignore[misc]
                done += 1
            except AssetError as error:
                unavailable[array.corruption] = str(error)
            except OSError as error:
                if stopped := stop_reason(array.path, error):
                    break
                raise OptionError(f"cannot write {array.path}: {error.strerror or error}") from None
        before += array.shape[0]
        report(before, total)
    failures = tuple(Failure(name, message) for name, message in sorted(unavailable.items()))
    return Outcome(done, skipped, failures, stopped=stopped)


def _write(array: ArrayFile, report: Callable[[int], None]) -> None:
    """Write a .npy file; call `report` with the number of rows after each chunk."""
    descr = np.lib.format.dtype_to_descr(np.dtype(array.dtype))
    rows = 0
    with draft(array.path) as file:
        header = {"descr": descr, "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in array.chunks():
            file.write(np.ascontiguousarray(chunk).data)
            report(rows := rows + len(chunk))

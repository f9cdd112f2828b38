"""The data sets that are published as arrays: MNIST-C and CIFAR-10-C.

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

from beaufort.arrays import Bytes
from beaufort.corruptions import SEVERITIES, corruptions
from beaufort.errors import AssetError, ImageFileError, OptionError
from beaufort.files import draft, remove_leftovers
from beaufort.image_sets._names import variants
from beaufort.image_sets._request import Request
from beaufort.image_sets._settings import claim_folder
from beaufort.image_sets._write_errors import stop_reason
from beaufort.image_sets.outcome import Failure, Outcome, Progress
from beaufort.images import Labeled, read_cifar, read_idx

__all__ = ["IDENTITY", "make_cifar", "make_mnist"]

IDENTITY = "identity"
"""The clean pictures, which MNIST-C has among its corruptions."""

_CHUNK = 2048
_MNIST_SPLITS = {"train": "train", "test": "t10k"}


@dataclass(frozen=True)
class _Array:
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
    splits = {split: found.first(request.limit) for split, found in _read_mnist(request.source).items()}
    if full := claim_folder(request.output, request.settings(limit=request.limit), request.names):
        return Outcome(stopped=full)
    arrays = []
    for name in request.names:
        for split, found in splits.items():
            pixels = partial(_mnist_rows, request, name, split, found.images)
            start = request.output / name / split
            arrays += [
                _Array(start.with_name(f"{split}_images.npy"), name, np.uint8, found.images.shape, pixels),
                _labels(start.with_name(f"{split}_labels.npy"), found.labels.astype(np.int64)),
            ]
    return _write_all(arrays, request.progress)


def make_cifar(request: Request) -> Outcome:
    """`output/<corruption>.npy`, all pictures at severity 1, then at 2 and so on; `output/labels.npy`."""
    variants(request.names, SEVERITIES, "cifar")
    test = read_cifar(request.source).first(request.limit)
    if full := claim_folder(request.output, request.settings(limit=request.limit), request.names):
        return Outcome(stopped=full)
    shape = (len(SEVERITIES) * len(test.images), *test.images.shape[1:])
    arrays = [_labels(request.output / "labels.npy", np.tile(test.labels, len(SEVERITIES)))]
    for name in request.names:
        pixels = partial(_cifar_rows, request, name, test.images)
        arrays.append(_Array(request.output / f"{name}.npy", name, np.uint8, shape, pixels))
    return _write_all(arrays, request.progress)


def _mnist_rows(request: Request, name: str, split: str, images: Bytes) -> Iterator[Bytes]:
    for part in _slices(len(images)):
        if name == IDENTITY:
            yield images[part]
        else:
            ids = [f"{split}/{i}" for i in range(part.start, part.stop)]
            yield corruptions[name](
                images[part], ids=ids, seed=request.seed, scale="mnist", jobs=request.jobs
            )


def _cifar_rows(request: Request, name: str, images: Bytes) -> Iterator[Bytes]:
    for severity in SEVERITIES:
        for part in _slices(len(images)):
            ids = [f"test/{i}" for i in range(part.start, part.stop)]
            pixels = np.ascontiguousarray(images[part])
            yield corruptions[name](
                pixels, severity, ids=ids, seed=request.seed, scale="cifar", jobs=request.jobs
            )


def _check_mnist_names(names: Sequence[str]) -> None:
    for name in names:
        if name != IDENTITY:
            corruptions[name].params(None, "mnist")


def _read_mnist(source: Path) -> dict[str, Labeled]:
    """The splits that are there, of which the test split must be one."""
    splits = {}
    for split, prefix in _MNIST_SPLITS.items():
        images, labels = (
            _find_idx(source, f"{prefix}-{part}-ubyte") for part in ("images-idx3", "labels-idx1")
        )
        if images is not None and labels is not None:
            splits[split] = _pair(images, labels)
        elif images is not None or labels is not None:
            raise ImageFileError(f"{source} must contain both images and labels, got only {images or labels}")
    if "test" not in splits:
        raise ImageFileError(
            f"{source} must contain t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, gzipped or not; "
            "give the folder with MNIST's four files"
        )
    return splits


def _find_idx(source: Path, name: str) -> Path | None:
    candidates = (source / name, source / f"{name}.gz", source / name.replace("-idx", ".idx"))
    return next((path for path in candidates if path.is_file()), None)


def _pair(images: Path, labels: Path) -> Labeled:
    pixels, numbers = read_idx(images), read_idx(labels)
    if pixels.shape[1:] != (28, 28) or numbers.shape != pixels.shape[:1]:
        raise ImageFileError(
            f"{images} and {labels} must have shapes (n, 28, 28) and (n,), got {pixels.shape} and "
            f"{numbers.shape}"
        )
    return Labeled(pixels[..., None], numbers)


def _labels(path: Path, labels: NDArray[Any]) -> _Array:
    return _Array(path, None, labels.dtype.type, labels.shape, lambda: iter([labels]))


def _slices(count: int) -> Iterator[slice]:
    return (slice(start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK))


def _write_all(arrays: Sequence[_Array], progress: Progress | None) -> Outcome:
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


def _write(array: _Array, tell: Callable[[int], None]) -> None:
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

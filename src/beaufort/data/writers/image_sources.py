"""Source images of writers, from directory trees or datasets, in a fixed order."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

import numpy as np
from PIL import Image

from beaufort._core.errors import OptionError
from beaufort.data import Dataset
from beaufort.data.folder import scan_folders
from beaufort.data.images import pixel_count
from beaufort.data.labels import class_ids, class_key
from beaufort.data.preparation import Step, prepare
from beaufort.data.writers.output_folder import Failure

_WNID = re.compile(r"n\d{8}")


class SourceFolder(NamedTuple):
    """A directory of the source and the images directly in it."""

    relative: PurePosixPath
    images: tuple[str, ...] = ()
    ignored: int = 0
    """Number of files without the name of an image."""
    failure: Failure | None = None


def check_apart(source: Path, output: Path, *, deep: bool = True) -> None:
    """Reject an output directory inside the source: its files would become sources.

    Args:
        source: an image or a directory.
        output: the output directory.
        deep: whether directories below the source are part of it.
    """
    if not source.exists():
        raise OptionError(f"source not found: {source}")
    try:
        place, target = source.resolve(), output.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a NUL in the name
        raise OptionError(f"cannot write to {output}: {error}") from None
    if source.is_dir() and (target.is_relative_to(place) if deep else target == place):
        raise OptionError(f"output must be outside the source {source}, got {output}")


class SourceImages(Protocol):
    """Images by the path of their outputs below `corruption/severity`."""

    @property
    def alone(self) -> bool:
        """Whether the source is a single file."""

    def folders(self) -> Iterator[SourceFolder]:
        """Yield all directories with the names of their images, in a fixed order."""

    def size(self, image: PurePosixPath) -> int:
        """Return the number of pixels if it is known before decoding; otherwise 0."""

    def read(self, image: PurePosixPath) -> Image.Image:
        """Return the image to corrupt."""

    def identity(self, image: PurePosixPath) -> str:
        """Return the id that determines its randomness."""


def prepare_image(image: Image.Image, steps: Sequence[Step]) -> Image.Image:
    """Return an RGB image after some steps, with the same pixels as in a run."""
    return Image.fromarray(prepare(np.asarray(image.convert("RGB")), steps))


@dataclass(frozen=True)
class FolderImages:
    """A file, or all files below a directory; the id of an image is its path there."""

    source: Path
    output: Path
    """Never searched, even inside the source."""
    decode: Callable[[Path], Image.Image]

    @cached_property
    def alone(self) -> bool:
        return not self.source.is_dir()

    @cached_property
    def _root(self) -> Path:
        return self.source.parent if self.alone else self.source

    def folders(self) -> Iterator[SourceFolder]:
        if self.alone:
            yield SourceFolder(PurePosixPath(), (self.source.name,))
            return
        for relative, images, others, problem in scan_folders(self.source, barred=[self.output]):
            failure = Failure(relative.as_posix(), problem) if problem else None
            yield SourceFolder(relative, images, len(others), failure)

    def size(self, image: PurePosixPath) -> int:
        return pixel_count(self._root / image)

    def read(self, image: PurePosixPath) -> Image.Image:
        return self.decode(self._root / image)

    def identity(self, image: PurePosixPath) -> str:
        """Return the path as valid Unicode."""
        return os.fsencode(image.as_posix()).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class DatasetImages:
    """A dataset, written as one directory per class; images keep their ids."""

    dataset: Dataset
    prepare: Callable[[Image.Image], Image.Image]
    alone: bool = False

    @cached_property
    def _places(self) -> dict[PurePosixPath, list[int]]:
        """Indices in the dataset by path; several at one path are failures."""
        found: dict[PurePosixPath, list[int]] = {}
        names = _folder_names(self.dataset.classes)
        for place, (name, label) in enumerate(zip(self.dataset.ids, self.dataset.labels, strict=True)):
            file = name.replace("\\", "/").rpartition("/")[2]
            found.setdefault(PurePosixPath(names[label], file), []).append(place)
        return found

    def folders(self) -> Iterator[SourceFolder]:
        by_folder: dict[PurePosixPath, list[str]] = {}
        for path in self._places:
            by_folder.setdefault(path.parent, []).append(path.name)
        if self.dataset.ignored:
            yield SourceFolder(PurePosixPath(), ignored=len(self.dataset.ignored))
        for problem in self.dataset.problems:
            yield SourceFolder(PurePosixPath(), failure=Failure(problem.id, problem.message))
        for path, places in self._places.items():
            for again in places[1:]:
                first = self.dataset.ids[places[0]]
                message = f"its outputs would have the same name {path} as those of {first}"
                yield SourceFolder(path.parent, failure=Failure(self.dataset.ids[again], message))
        for folder in sorted(by_folder):
            yield SourceFolder(folder, tuple(sorted(by_folder[folder])))

    def size(self, image: PurePosixPath) -> int:  # noqa: ARG002
        return 0

    def read(self, image: PurePosixPath) -> Image.Image:
        pixels = self.dataset[self._places[image][0]].image
        return self.prepare(Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels))

    def identity(self, image: PurePosixPath) -> str:
        return self.dataset.ids[self._places[image][0]]


def _folder_names(classes: tuple[str, ...]) -> list[str]:
    """Return directory names of classes: WordNet ids for classes of ImageNet, or valid file names.

    >>> _folder_names(("tench", "goldfish")), _folder_names(("his/hers", "mine"))
    (['n01440764', 'n01443537'], ['his_hers', 'mine'])
    """
    wnids = [class_key(name) for name in classes]
    if all(map(_WNID.fullmatch, wnids)) and len(set(wnids)) == len(wnids):
        return wnids
    if _are_numbers_of_imagenet(classes, wnids):
        return list(class_ids("imagenet-1k")[: len(classes)])
    names = [re.sub(r"[^\w.,() -]", "_", name).strip(". ") for name in classes]
    return names if all(names) and len(set(names)) == len(names) else [str(i) for i in range(len(classes))]


def _are_numbers_of_imagenet(classes: tuple[str, ...], wnids: list[str]) -> bool:
    """Return whether labels are class numbers of ImageNet, judged by the names of some classes.

    Other classes may have their number as name, or a name that two classes of ImageNet share.
    """
    known = class_ids("imagenet-1k")
    named = [(wnid, label) for label, wnid in enumerate(wnids) if _WNID.fullmatch(wnid)]
    agree = bool(named) and all(label < len(known) and known[label] == wnid for wnid, label in named)
    others = [name for name, wnid in zip(classes, wnids, strict=True) if not _WNID.fullmatch(wnid)]
    return agree and all(name.isdigit() or name.casefold() in ("crane", "maillot") for name in others)

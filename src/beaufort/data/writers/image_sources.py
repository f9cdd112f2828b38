"""The pictures of a folder tree, folder by folder, in a fixed order."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

import numpy as np
from PIL import Image

from beaufort._core.errors import OptionError
from beaufort.data import Dataset
from beaufort.data.images import is_folder, is_image_name, pixel_count
from beaufort.data.labels import class_ids, same_name
from beaufort.data.preparation import Step, prepare
from beaufort.data.writers.output_folder import Failure

_Identity = tuple[int, int]
"""Device and inode: what a folder is, whatever the way to it is called."""


@dataclass(frozen=True)
class Folder:
    """A folder of the source and the pictures directly in it."""

    relative: PurePosixPath
    pictures: tuple[str, ...] = ()
    ignored: int = 0
    failure: Failure | None = None


def check_apart(source: Path, output: Path, *, deep: bool = True) -> None:
    """Refuse an output that lies in the source: what is in it would be taken for sources.

    Args:
        source: a picture, or a folder.
        output: where to write.
        deep: whether folders below the source are part of it.
    """
    if not source.exists():
        raise OptionError(f"source {source} does not exist; give a picture or a folder of pictures")
    try:
        place, target = source.resolve(), output.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a link that leads to itself, a NUL in the name
        raise OptionError(f"the output {output} cannot be written to ({error}); use another folder") from None
    if source.is_dir() and (target.is_relative_to(place) if deep else target == place):
        raise OptionError(f"output must lie outside of the source {source}, got {output}")


def picture_folders(source: Path, output: Path) -> Iterator[Folder]:
    """Every folder from `source` down, sorted; of a file, its folder with that picture alone.

    Links are followed; a folder that contains itself this way is entered once, and `output` never.
    """
    if not source.is_dir():
        yield Folder(PurePosixPath(), (source.name,))
        return
    barred = frozenset(_identity(path) for path in (output,) if path.is_dir())
    waiting: list[tuple[PurePosixPath, frozenset[_Identity]]] = [(PurePosixPath(), barred)]
    while waiting:
        relative, above = waiting.pop()
        try:
            here = _identity(source / relative)
            if here in above:
                continue
            folder, below = _look(source / relative, relative)
        except OSError as error:
            failure = Failure(relative.as_posix(), f"the folder cannot be read ({error.strerror or error})")
            yield Folder(relative, failure=failure)
            continue
        waiting += [(relative / name, above | {here}) for name in sorted(below, reverse=True)]
        yield folder


def _look(path: Path, relative: PurePosixPath) -> tuple[Folder, list[str]]:
    pictures, folders, ignored = [], [], 0
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if is_folder(entry):
                folders.append(entry.name)
            elif is_image_name(entry.name):
                pictures.append(entry.name)
            else:
                ignored += 1
    return Folder(relative, tuple(sorted(pictures)), ignored), folders


def _identity(path: Path) -> _Identity:
    found = path.stat()
    return found.st_dev, found.st_ino


_WNID = re.compile(r"n\d{8}")


class ImageSource(Protocol):
    """Pictures by the path that their outputs have below `corruption/severity`."""

    @property
    def alone(self) -> bool:
        """Whether this is one picture."""

    def folders(self) -> Iterator[Folder]:
        """Every folder with the names of its pictures, in a fixed order."""

    def size(self, picture: PurePosixPath) -> int:
        """How many pixels it has, where that is known before it is decoded; else 0."""

    def read(self, picture: PurePosixPath) -> Image.Image:
        """The picture that is corrupted."""

    def identity(self, picture: PurePosixPath) -> str:
        """What its randomness comes from."""


def prepare_image(image: Image.Image, steps: Sequence[Step]) -> Image.Image:
    """A picture in color after some steps, with the pixels that a run corrupts."""
    return Image.fromarray(prepare(np.asarray(image.convert("RGB")), steps))


@dataclass(frozen=True)
class FolderImages:
    """A file, or all below a folder; a picture's identity is its path there."""

    source: Path
    output: Path
    """Never entered, should it lie in the source."""
    decode: Callable[[Path], Image.Image]

    @cached_property
    def alone(self) -> bool:
        return not self.source.is_dir()

    @cached_property
    def _root(self) -> Path:
        return self.source.parent if self.alone else self.source

    def folders(self) -> Iterator[Folder]:
        return picture_folders(self.source, self.output)

    def size(self, picture: PurePosixPath) -> int:
        return pixel_count(self._root / picture)

    def read(self, picture: PurePosixPath) -> Image.Image:
        return self.decode(self._root / picture)

    def identity(self, picture: PurePosixPath) -> str:
        """The path as text that can be hashed, whatever bytes the file system allows in a name."""
        return os.fsencode(picture.as_posix()).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class DatasetImages:
    """A folder a class, as published; a picture's identity is its id, as in a run."""

    dataset: Dataset
    prepare: Callable[[Image.Image], Image.Image]
    alone: bool = False

    @cached_property
    def _places(self) -> dict[PurePosixPath, list[int]]:
        """Places in the data set by path; two at one path are told."""
        found: dict[PurePosixPath, list[int]] = {}
        names = _folder_names(self.dataset.classes)
        for place, (name, label) in enumerate(zip(self.dataset.ids, self.dataset.labels, strict=True)):
            file = name.replace("\\", "/").rpartition("/")[2]
            found.setdefault(PurePosixPath(names[label], file), []).append(place)
        return found

    def folders(self) -> Iterator[Folder]:
        by_folder: dict[PurePosixPath, list[str]] = {}
        for path in self._places:
            by_folder.setdefault(path.parent, []).append(path.name)
        if self.dataset.left_out:
            yield Folder(PurePosixPath(), ignored=len(self.dataset.left_out))
        for problem in self.dataset.problems:
            yield Folder(PurePosixPath(), failure=Failure(problem.id, problem.message))
        for path, places in self._places.items():
            for again in places[1:]:
                first = self.dataset.ids[places[0]]
                message = f"its outputs would be called {path}, as those of {first}; rename it"
                yield Folder(path.parent, failure=Failure(self.dataset.ids[again], message))
        for folder in sorted(by_folder):
            yield Folder(folder, tuple(sorted(by_folder[folder])))

    def size(self, picture: PurePosixPath) -> int:  # noqa: ARG002
        return 0

    def read(self, picture: PurePosixPath) -> Image.Image:
        pixels = self.dataset[self._places[picture][0]].image
        return self.prepare(Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels))

    def identity(self, picture: PurePosixPath) -> str:
        return self.dataset.ids[self._places[picture][0]]


def _folder_names(classes: tuple[str, ...]) -> list[str]:
    """Folders of classes: WordNet ids where the classes are ImageNet's; else names that a file system takes.

    >>> _folder_names(("tench", "goldfish")), _folder_names(("his/hers", "mine"))
    (['n01440764', 'n01443537'], ['his_hers', 'mine'])
    """
    wnids = [same_name(name) for name in classes]
    if all(map(_WNID.fullmatch, wnids)) and len(set(wnids)) == len(wnids):
        return wnids
    if _are_numbers_of_imagenet(classes, wnids):
        return list(class_ids("imagenet-1k")[: len(classes)])
    names = [re.sub(r"[^\w.,() -]", "_", name).strip(". ") for name in classes]
    return names if all(names) and len(set(names)) == len(names) else [str(i) for i in range(len(classes))]


def _are_numbers_of_imagenet(classes: tuple[str, ...], wnids: list[str]) -> bool:
    """Whether labels are ImageNet's class numbers: names that are known say so, and none says otherwise.

    Classes that no picture is of are called by their number; two classes that share a name have none here.
    """
    known = class_ids("imagenet-1k")
    named = [(wnid, label) for label, wnid in enumerate(wnids) if _WNID.fullmatch(wnid)]
    agree = bool(named) and all(label < len(known) and known[label] == wnid for wnid, label in named)
    others = [name for name, wnid in zip(classes, wnids, strict=True) if not _WNID.fullmatch(wnid)]
    return agree and all(name.isdigit() or name.casefold() in ("crane", "maillot") for name in others)

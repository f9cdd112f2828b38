"""webdataset shards: tars in which files with the same name up to the first dot form a sample.

The tars are read in place, so samples keep their order and can be accessed at random, without the package
webdataset.
"""

from __future__ import annotations

import math
import re
from itertools import product
from pathlib import Path, PurePosixPath

import numpy as np

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data._checks import check_none_missing, unsafe_path_reason
from beaufort.data._dataset import MAX_CLASSES, Dataset, Problem, numbered
from beaufort.data._files import Members, TarMember, tar_members
from beaufort.data._reader import reader
from beaufort.data.images import is_image_name

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MAX_SHARDS = 100_000


def _detect(path: Path) -> bool:
    return path.suffix == ".tar" if path.is_file() else any(path.glob("*.tar"))


@reader("wds", "a .tar, or a directory of them, with pairs of an image and a .cls file", _detect)
def open_shards(location: str, part: str) -> Dataset:
    """Open samples in the order of the shards; ids are `shard.tar/key`."""
    shards = sorted(Path(location).glob("*.tar")) if Path(location).is_dir() else expand(location)
    missing = [str(shard) for shard in shards if not shard.is_file()]
    check_none_missing(f"shards of {location}", missing, len(shards), error=OptionError)
    if len({shard.name for shard in shards}) != len(shards):
        raise OptionError(f"two shards of {location} have the same file name; rename one")
    problems: list[Problem] = []
    found = [sample for shard in shards for sample in _samples(shard, problems)]
    if not found:
        reason = f" ({problems[0].id}: {problems[0].message})" if problems else ""
        raise ImageFileError(f"no pairs of an image and a .cls file found in {location}{reason}")
    labels = np.array([label for _, label, _ in found], np.int64)
    return Dataset(
        PurePosixPath(location).name.partition(".")[0] or location,
        numbered(labels),
        [id for id, _, _ in found],
        labels,
        Members([member for _, _, member in found]),
        tuple(problems),
    )


def expand(pattern: str) -> list[Path]:
    """Return the paths that a pattern with ranges in braces stands for.

    >>> [path.name for path in expand("val-{008..010}.tar")]
    ['val-008.tar', 'val-009.tar', 'val-010.tar']
    """
    ranges = [(int(first), int(last), len(first)) for first, last in _RANGE.findall(pattern)]
    count = math.prod(max(0, last - first + 1) for first, last, _ in ranges)
    if not 1 <= count <= _MAX_SHARDS:
        raise OptionError(
            f"a pattern must stand for 1 to {_MAX_SHARDS:,} shards, such as {{000..146}}, got {count:,} for "
            f"{pattern!r:.200}"
        )
    between = _RANGE.split(pattern)[::3]
    numbers = [[f"{one:0{width}}" for one in range(first, last + 1)] for first, last, width in ranges]
    return [Path("".join(map("".join, zip(between, (*some, ""), strict=True)))) for some in product(*numbers)]


def _samples(shard: Path, problems: list[Problem]) -> list[tuple[str, int, TarMember]]:
    """Return ids, labels and image files of one shard."""
    groups: dict[str, dict[str, TarMember]] = {}
    for name, member in tar_members(shard, problems):
        base = PurePosixPath(name).name
        key = name[: len(name) - len(base)] + base.partition(".")[0]
        ending = base.partition(".")[2].lower()
        if reason := unsafe_path_reason(name):
            problems.append(Problem(f"{shard.name}/{name}", reason))
        elif ending in groups.setdefault(key, {}):
            problems.append(Problem(f"{shard.name}/{name}", "the shard has two files with this name"))
        else:
            groups[key][ending] = member
    found = []
    for key, files in groups.items():
        try:
            found.append((f"{shard.name}/{key}", _label(files), _image(files)))
        except ImageFileError as error:
            problems.append(Problem(f"{shard.name}/{key}", str(error)))
    return found


def _image(files: dict[str, TarMember]) -> TarMember:
    images = [member for ending, member in files.items() if is_image_name(f"x.{ending}")]
    if len(images) != 1:
        raise ImageFileError(f"a sample must have one image, got {len(images)}")
    return images[0]


def _label(files: dict[str, TarMember]) -> int:
    if "cls" not in files:
        raise ImageFileError(f"the sample has no .cls file, only {', '.join(files)}")
    text = files["cls"].read()[:20].strip()
    if not text.isdigit() or int(text) >= MAX_CLASSES:
        raise ImageFileError(f"a label must be an integer from 0 to {MAX_CLASSES - 1:,}, got {text!r}")
    return int(text)

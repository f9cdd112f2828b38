"""webdataset shards: tars in which files that share a name up to its first dot are one sample.

The tars are read in place, at the offsets of their members, so the order is theirs and any sample can be
asked for. The package webdataset is not needed.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import numpy as np

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data._dataset import MOST_CLASSES, Dataset, Problem, numbered
from beaufort.data._files import Members, TarMember, tar_members
from beaufort.data._reader import reader, unsafe_path_reason
from beaufort.data.images import is_image_name

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MOST_SHARDS = 1_000_000


def _detect(path: Path) -> bool:
    return path.suffix == ".tar" if path.is_file() else any(path.glob("*.tar"))


@reader("wds", "a .tar, or a folder of them, with pairs of a picture and a .cls file", _detect)
def open_shards(location: str, part: str) -> Dataset:
    """Samples in the order of the shards; ids are `shard.tar/key`."""
    shards = sorted(Path(location).glob("*.tar")) if Path(location).is_dir() else expand(location)
    if absent := [shard for shard in shards if not shard.is_file()]:
        raise OptionError(f"{absent[0]} does not exist ({len(absent)} of {len(shards)} shards are missing)")
    if len({shard.name for shard in shards}) != len(shards):
        raise OptionError(
            f"shards of {location} must have different names, as image ids contain them; rename one"
        )
    problems: list[Problem] = []
    found = [sample for shard in shards for sample in _samples(shard, problems)]
    if not found:
        reason = f" ({problems[0].id}: {problems[0].message})" if problems else ""
        raise ImageFileError(f"{location} must contain pairs of a picture and a .cls file, got none{reason}")
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
    """The paths that a pattern with a range in braces stands for.

    >>> [path.name for path in expand("val-{008..010}.tar")]
    ['val-008.tar', 'val-009.tar', 'val-010.tar']
    """
    match = _RANGE.search(pattern)
    if match is None:
        return [Path(pattern)]
    first, last = int(match[1]), int(match[2])
    if not first <= last < first + _MOST_SHARDS:
        raise OptionError(f"a range must go from low to high, as in {{000..146}}, got {match[0]}")
    width = len(match[1])
    return [
        path
        for number in range(first, last + 1)
        for path in expand(f"{pattern[: match.start()]}{number:0{width}}{pattern[match.end() :]}")
    ]


def _samples(shard: Path, problems: list[Problem]) -> list[tuple[str, int, TarMember]]:
    """The samples of one shard: ids, labels and where the pictures are."""
    groups: dict[str, dict[str, TarMember]] = {}
    for name, member in tar_members(shard, problems):
        base = PurePosixPath(name).name
        key = name[: len(name) - len(base)] + base.partition(".")[0]
        ending = base.partition(".")[2].lower()
        if reason := unsafe_path_reason(name):
            problems.append(Problem(f"{shard.name}/{name}", reason))
        elif ending in groups.setdefault(key, {}):
            problems.append(Problem(f"{shard.name}/{name}", "a second file of this name in the shard"))
        else:
            groups[key][ending] = member
    found = []
    for key, files in groups.items():
        try:
            found.append((f"{shard.name}/{key}", _label(files), _picture(files)))
        except ImageFileError as error:
            problems.append(Problem(f"{shard.name}/{key}", str(error)))
    return found


def _picture(files: dict[str, TarMember]) -> TarMember:
    pictures = [member for ending, member in files.items() if is_image_name(f"x.{ending}")]
    if len(pictures) != 1:
        raise ImageFileError(f"a sample must have one picture (.jpg or the like), got {len(pictures)}")
    return pictures[0]


def _label(files: dict[str, TarMember]) -> int:
    if "cls" not in files:
        raise ImageFileError(f"a sample must have a .cls file, got only {', '.join(files)}")
    text = files["cls"].read()[:20].strip()
    if not text.isdigit() or int(text) >= MOST_CLASSES:
        raise ImageFileError(f"a label must be an integer from 0 to {MOST_CLASSES - 1:,}, got {text!r}")
    return int(text)

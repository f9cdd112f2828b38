"""A set that is to be evaluated: its images with their nuisances, and whose failures chose them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from beaufort.data import KIND_FOLDERS, Dataset, load_dataset, parse_spec
from beaufort.data.labels import Grouping, read_grouping
from beaufort.mining.export import CATEGORIES, METADATA
from beaufort.mining.plan import MiningError


@dataclass(frozen=True)
class SetImage:
    """What is unusual about an image; empty where nobody knows."""

    kind: str
    nuisance: str


@dataclass(frozen=True, eq=False)
class MinedSet:
    """A set, opened."""

    data: Dataset
    images: tuple[SetImage, ...]
    """In the order of the data set."""
    surrogates: tuple[str, ...]
    """Models whose failures chose the images, as far as the set says."""
    labels: Grouping | None
    """The outputs of each category, if the set has them."""


def open_set(location: str) -> MinedSet:
    """A set that `beaufort mine export` wrote, or any data set: `imagenet-d:FOLDER`, class folders.

    Args:
        location: as `load_dataset` takes it.
    """
    data = load_dataset(location)
    folder = Path(parse_spec(location)[1])  # of a part of a set, too: it was chosen by the same models
    known = _metadata(folder / METADATA) if (folder / METADATA).is_file() else {}
    images = tuple(known[one][0] if one in known else SetImage(_kind(one), "") for one in data.ids)
    surrogates = dict.fromkeys(name for _, names in known.values() for name in names)
    categories = folder / CATEGORIES
    labels = read_grouping(categories) if categories.is_file() else None
    return MinedSet(data, images, tuple(surrogates), labels)


def _kind(image: str) -> str:
    first = image.partition("/")[0]
    return first if first in KIND_FOLDERS else ""


def _metadata(path: Path) -> Mapping[str, tuple[SetImage, tuple[str, ...]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=["file", "kind", "nuisance", "surrogates"], use_threads=False)
        return {
            str(row["file"]): (
                SetImage(str(row["kind"]), str(row["nuisance"])),
                tuple(str(name) for name, _ in row["surrogates"]),
            )
            for row in table.to_pylist()
        }
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise MiningError(
            f"{path} must be as `beaufort mine export` wrote it, got another ({error!r})"
        ) from None

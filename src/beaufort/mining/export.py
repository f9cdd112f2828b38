"""Mined sets to publish: exported with metadata, checksums and a datasheet, and opened again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from beaufort._core.files import remove_leftover, write_bytes
from beaufort._core.validation import validate_choice
from beaufort.data import KIND_FOLDERS, MANIFEST, SET_FILE, Dataset, load_dataset, parse_spec
from beaufort.data.labels import Grouping, read_grouping
from beaufort.mining.datasheet import SetFacts, datasheet
from beaufort.mining.generation import GeneratedImage, read_image_facts
from beaufort.mining.plan import MiningError
from beaufort.mining.predictions import find_labels
from beaufort.mining.review import ImageDecision, Review, decisions, open_review, review_status
from beaufort.mining.selection import SelectedImage, read_selection

LAYOUTS = ("imagenet-d", "image-folder")
"""`kind/category/id.png`, or `category/id.png`."""
METADATA = "metadata.parquet"
CATEGORIES = "categories.json"
DATASHEET = "DATASHEET.md"


@dataclass(frozen=True)
class _Row:
    """One image on its way into the set."""

    made: GeneratedImage
    chosen: SelectedImage
    decision: ImageDecision | None
    content: bytes


def export_set(
    output: Path,
    images: Path,
    selection: Path,
    *,
    review: Review | Path | None = None,
    labels: Grouping | str | None = None,
    layout: str = "imagenet-d",
    title: str = "A mined set",
    license_text: str = "not stated",
    reviewed_by: str = "people",
    decided_only: bool = False,
) -> int:
    """Write a mined set into a new folder; gives how many images it has.

    Args:
        output: the folder, which must be empty or absent, or hold what a killed export of this set left.
        images: the folder that was generated.
        selection: `selection.csv` of `beaufort mine select`.
        review: keeps the images that people accepted; without one, all that surrogates fail on.
        labels: the outputs that count as each category, written along as `categories.json`.
        layout: one of `LAYOUTS`.
        title: of the datasheet.
        license_text: of the images, in the datasheet.
        reviewed_by: who the reviewers were, in the datasheet.
        decided_only: leave images out that the review has not decided; they are an error otherwise.
    """
    validate_choice("layout", layout, LAYOUTS)
    if output.exists() and not output.is_dir():
        raise MiningError(f"{output} is a file; output must be a folder")
    listed = read_selection(selection)
    if isinstance(review, Path):
        review = open_review(review)
    rows = list(_rows(images, listed, None if review is None else _judged(review, images, decided_only)))
    if not rows:
        raise MiningError("no image is kept and accepted")
    categories = sorted({one.category for one in listed})  # those of which nothing is kept compete, too
    outputs = find_labels(labels)
    grouping = None if outputs is None else _outputs(outputs, categories)
    files = {_file(row, layout): row for row in rows}
    generators = {json.dumps(row.made.generator, sort_keys=True): row.made.generator for row in rows}
    facts = SetFacts(
        title=title,
        license=license_text,
        layout=layout,
        made=len(listed),
        kept=sum(one.kept for one in listed),
        items=tuple(row.made.item for row in rows),
        generators=tuple(generators.values()),
        surrogates=tuple(listed[0].predicted),
        fewest=min(row.chosen.failures for row in rows),
        reviewed_by=reviewed_by,
        status=None if review is None else review_status(review),
        rules=None if review is None else review.rules,
    )
    contents = {name: row.content for name, row in files.items()} | {
        METADATA: _metadata_file(files),
        DATASHEET: datasheet(facts, grouping=grouping).encode(),
        SET_FILE: _json(
            {"format": "beaufort mined set", "version": 1, "layout": layout, "categories": categories}
        ),
    }
    if grouping is not None:
        contents[CATEGORIES] = _json(grouping)
    _write(output, contents)
    return len(rows)


def _write(output: Path, contents: Mapping[str, bytes]) -> None:
    """Put all files in place, the manifest last; what a killed export of the same set left is taken up."""
    there = [path for path in sorted(output.rglob("*")) if not path.is_dir() and not remove_leftover(path)]
    for path in there:
        if contents.get(path.relative_to(output).as_posix()) != path.read_bytes():
            raise MiningError(f"{path} is not part of this set; export it into a new or empty folder")
    for name, content in contents.items():
        if output / name not in there:
            write_bytes(output / name, content)
    lines = [f"{sha256(content).hexdigest()}  {name}\n" for name, content in sorted(contents.items())]
    write_bytes(output / MANIFEST, "".join(lines).encode())  # a set without it is not complete


def _rows(
    images: Path, listed: Sequence[SelectedImage], judged: Mapping[str, ImageDecision] | None
) -> Iterator[_Row]:
    """The images that are kept and, where there is a review, accepted; each must be what it was."""
    for chosen in listed:
        if not chosen.kept:
            continue
        decision = None
        if judged is not None:
            decision = judged.get(chosen.file)
            if decision is None:
                raise MiningError(f"{chosen.file} is not in the review; review the list of this selection")
            if decision.category != chosen.category:
                raise MiningError(
                    f"{chosen.file} was reviewed as {decision.category!r} and selected as {chosen.category!r}"
                )
            if decision.sha256 != chosen.sha256:
                raise MiningError(f"{chosen.file} changed between review and selection; create a new review")
            if decision.decision != "accepted":
                continue
        content = _content(images, chosen)
        made = read_image_facts(images / chosen.file)
        if (made.item.file, made.item.category) != (chosen.file, chosen.category):
            raise MiningError(
                f"{chosen.file} as {chosen.category!r} was generated as {made.item.file}; select again"
            )
        yield _Row(made, chosen, decision, content)


def _content(images: Path, chosen: SelectedImage) -> bytes:
    """The bytes of an image, which must be those that were selected."""
    path = (images / chosen.file).resolve()
    if not path.is_relative_to(images.resolve()):
        raise MiningError(f"{chosen.file!r} is not in the folder of the images")
    try:
        content = path.read_bytes()
    except OSError:
        raise MiningError(
            f"image not found: {images / chosen.file}; generate it again with `beaufort mine generate`"
        ) from None
    if sha256(content).hexdigest() != chosen.sha256:
        raise MiningError(f"{chosen.file} changed after the selection; generate it again, or select again")
    return content


def _judged(review: Review, images: Path, decided_only: bool) -> dict[str, ImageDecision]:
    """What became of each image, by its file below the folder of the images."""
    if review.folder.resolve() != images.resolve():
        raise MiningError(f"the review is of the images in {review.folder}, not of those in {images}")
    found = {one.file: one for one in decisions(review)}
    waiting = [one for one in found.values() if one.decision in ("open", "tied")]
    if waiting and not decided_only:
        raise MiningError(
            f"{len(waiting)} images of the review are open or tied (first: {waiting[0].file}); finish it, or "
            "leave them out with decided_only=yes"
        )
    return found


def _outputs(labels: Grouping, categories: Sequence[str]) -> dict[str, list[int | str]]:
    if lost := [category for category in categories if category not in labels]:
        raise MiningError(f"the labels lack {len(lost)} categories (first: {lost[0]!r})")
    return {category: list(labels[category]) for category in categories}


def _file(row: _Row, layout: str) -> str:
    item = row.made.item
    return item.file if layout == "imagenet-d" else f"{item.category}/{item.id}.png"


def _metadata_file(files: Mapping[str, _Row]) -> bytes:
    """A row for each image; what surrogates said, and how people voted, beside how it was made."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(files.items())
    votes = [row.decision for _, row in rows]
    table = pa.table(
        {
            "file": [name for name, _ in rows],
            "sha256": [row.chosen.sha256 for _, row in rows],
            "id": [row.made.item.id for _, row in rows],
            "category": [row.made.item.category for _, row in rows],
            "kind": [row.made.item.kind for _, row in rows],
            "nuisance": [row.made.item.nuisance for _, row in rows],
            "prompt": [row.made.item.prompt for _, row in rows],
            "seed": pa.array([row.made.item.seed for _, row in rows], pa.int64()),
            "generator": [json.dumps(row.made.generator, sort_keys=True) for _, row in rows],
            "surrogates": pa.array(
                [list(row.chosen.predicted.items()) for _, row in rows], pa.map_(pa.string(), pa.string())
            ),
            "votes_yes": pa.array([None if one is None else one.yes for one in votes], pa.int32()),
            "votes_no": pa.array([None if one is None else one.no for one in votes], pa.int32()),
            "settled": pa.array([None if one is None else one.settled for one in votes], pa.bool_()),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


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
    folder = Path(parse_spec(location).location)  # of a part of a set, too: it was chosen by the same models
    known = _read_metadata(folder / METADATA) if (folder / METADATA).is_file() else {}
    images = tuple(known[one][0] if one in known else SetImage(_kind(one), "") for one in data.ids)
    surrogates = dict.fromkeys(name for _, names in known.values() for name in names)
    categories = folder / CATEGORIES
    labels = read_grouping(categories) if categories.is_file() else None
    return MinedSet(data, images, tuple(surrogates), labels)


def _kind(image: str) -> str:
    first = image.partition("/")[0]
    return first if first in KIND_FOLDERS else ""


def _read_metadata(path: Path) -> Mapping[str, tuple[SetImage, tuple[str, ...]]]:
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
        raise MiningError(f"cannot read {path} as metadata of `beaufort mine export`: {error!r}") from None

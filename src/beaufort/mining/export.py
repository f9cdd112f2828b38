"""A mined set to give away: images, what is known of each, checksums, and a datasheet."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from beaufort._core.files import remove_leftover, write_bytes
from beaufort.data import MANIFEST, SET_FILE
from beaufort.data.labels import Grouping
from beaufort.mining.datasheet import SetFacts, datasheet
from beaufort.mining.generation import GeneratedImage, read_image_facts
from beaufort.mining.plan import MiningError
from beaufort.mining.review import ImageDecision, Review, decisions, standing
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
    review: Review | None = None,
    labels: Grouping | None = None,
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
    if layout not in LAYOUTS:
        raise MiningError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if output.exists() and not output.is_dir():
        raise MiningError(f"output must be a folder, got the file {output}")
    listed = read_selection(selection)
    judged = {} if review is None else _judged(review, images, decided_only)
    rows = list(_rows(images, listed, judged if review is not None else None))
    if not rows:
        raise MiningError("there must be an image to export, got none that is kept and accepted")
    categories = sorted({one.category for one in listed})  # those of which nothing is kept compete, too
    grouping = None if labels is None else _outputs(labels, categories)
    files = {_file(row, layout): row for row in rows}
    facts = _facts(title, license_text, reviewed_by, listed, rows, review, layout)
    contents = {name: row.content for name, row in files.items()} | {
        METADATA: _metadata(files),
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
            raise MiningError(
                "output must be a new or an empty folder, or what a killed export of the same set left, got "
                f"{output} with {path.relative_to(output).as_posix()}"
            )
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
                raise MiningError(
                    f"every kept image must be in the review, got none for {chosen.file}; review the list "
                    "that the selection wrote"
                )
            if decision.category != chosen.category:
                raise MiningError(
                    f"an image must be reviewed for its own category {chosen.category!r}, got "
                    f"{decision.category!r} for {chosen.file}"
                )
            if decision.sha256 != chosen.sha256:
                raise MiningError(
                    f"an image must be reviewed as it was selected, got a review of another image under "
                    f"{chosen.file}; make a new review of the list that the selection wrote"
                )
            if decision.decision != "accepted":
                continue
        content = _content(images, chosen)
        made = read_image_facts(images / chosen.file)
        if (made.item.file, made.item.category) != (chosen.file, chosen.category):
            raise MiningError(
                f"a selected image must be the one that it says it is, {made.item.file}, got {chosen.file} "
                f"as {chosen.category!r}; select anew"
            )
        yield _Row(made, chosen, decision, content)


def _content(images: Path, chosen: SelectedImage) -> bytes:
    """The bytes of an image, which must be those that were selected."""
    path = (images / chosen.file).resolve()
    if not path.is_relative_to(images.resolve()):
        raise MiningError(f"file must lie in the folder of the images, got {chosen.file!r}")
    try:
        content = path.read_bytes()
    except OSError:
        raise MiningError(
            f"a selected image must be there, got none at {images / chosen.file}; `beaufort mine generate` "
            "makes it again from the plan"
        ) from None
    if sha256(content).hexdigest() != chosen.sha256:
        raise MiningError(
            f"an image must be the one that was selected, got another under {chosen.file}; generate it again "
            "from the plan, or select anew"
        )
    return content


def _judged(review: Review, images: Path, decided_only: bool) -> dict[str, ImageDecision]:
    """What became of each image, by its file below the folder of the images."""
    if review.folder.resolve() != images.resolve():
        raise MiningError(
            f"the review must be of the images in {images}, got one of those in {review.folder}"
        )
    found = {one.file: one for one in decisions(review)}
    waiting = [one for one in found.values() if one.decision in ("open", "tied")]
    if waiting and not decided_only:
        raise MiningError(
            f"the review must have decided every image, got {len(waiting)} that are open or tied (first: "
            f"{waiting[0].file}); finish it, or leave them out with --decided-only"
        )
    return found


def _outputs(labels: Grouping, categories: Sequence[str]) -> dict[str, list[int | str]]:
    if lost := [category for category in categories if category not in labels]:
        raise MiningError(
            f"every category must have its outputs in the labels, got none for {len(lost)} (first: "
            f"{lost[0]!r})"
        )
    return {category: list(labels[category]) for category in categories}


def _file(row: _Row, layout: str) -> str:
    item = row.made.item
    return item.file if layout == "imagenet-d" else f"{item.category}/{item.id}.png"


def _metadata(files: Mapping[str, _Row]) -> bytes:
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
                [list(row.chosen.said.items()) for _, row in rows], pa.map_(pa.string(), pa.string())
            ),
            "votes_yes": pa.array([None if one is None else one.yes for one in votes], pa.int32()),
            "votes_no": pa.array([None if one is None else one.no for one in votes], pa.int32()),
            "settled": pa.array([None if one is None else one.settled for one in votes], pa.bool_()),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _facts(
    title: str,
    license_text: str,
    reviewed_by: str,
    listed: Sequence[SelectedImage],
    rows: Sequence[_Row],
    review: Review | None,
    layout: str,
) -> SetFacts:
    return SetFacts(
        title=title,
        license=license_text,
        layout=layout,
        made=len(listed),
        kept=sum(one.kept for one in listed),
        items=tuple(row.made.item for row in rows),
        generators=tuple(
            {json.dumps(row.made.generator, sort_keys=True): row.made.generator for row in rows}.values()
        ),
        surrogates=tuple(listed[0].said),
        fewest=min(sum(answer != row.chosen.category for answer in row.chosen.said.values()) for row in rows),
        reviewed_by=reviewed_by,
        standing=None if review is None else standing(review),
        rules=None if review is None else review.rules,
    )


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()

"""Mined sets to publish: export with metadata, checksums and a datasheet, and opening of sets."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from beaufort._core.files import remove_leftover, write_bytes
from beaufort._core.pages import render_fragment
from beaufort._core.text import counted
from beaufort._core.validation import validate_choice, validate_output_directory
from beaufort.data import KIND_FOLDERS, MANIFEST, SET_FILE, Dataset, load_dataset, parse_spec
from beaufort.data.labels import Grouping, read_grouping
from beaufort.mining.generation import GeneratedImage, read_image_facts, read_omitted
from beaufort.mining.plan import MiningError
from beaufort.mining.predictions import find_labels
from beaufort.mining.review import ImageDecision, Review, decisions, open_review, review_status
from beaufort.mining.screening import DECISIONS, ScreenedImage, read_screening
from beaufort.mining.selection import SelectedImage, read_selection

LAYOUTS = ("imagenet-d", "image-folder")
"""`kind/category/id.png`, or `category/id.png`."""
METADATA = "metadata.parquet"
CATEGORIES = "categories.json"
DATASHEET = "DATASHEET.md"


@dataclass(frozen=True)
class _Row:
    """An image of the set."""

    image: GeneratedImage
    selected: SelectedImage
    decision: ImageDecision | None
    screened: ScreenedImage | None
    """Result of the screening, if there was one."""


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
    """Write a mined set into a new folder, and return the number of images.

    Args:
        output: the folder, which must be empty or missing, or contain an interrupted export of the same set.
        images: the folder of generated images.
        selection: `selection.csv` of `beaufort mine select`.
        review: review whose accepted images are exported; all selected images if None.
        labels: outputs that count as each category, written as `categories.json`.
        layout: one of `LAYOUTS`.
        title: title of the datasheet.
        license_text: license of the images, for the datasheet.
        reviewed_by: who the reviewers were, for the datasheet.
        decided_only: leave out images that the review has not decided, which are an error otherwise.
    """
    validate_choice("layout", layout, LAYOUTS)
    validate_output_directory(output, MiningError)
    listed = read_selection(selection)
    if isinstance(review, Path):
        review = open_review(review)
    rows = list(_rows(images, listed, None if review is None else _decisions(review, images, decided_only)))
    if not rows:
        raise MiningError("no image is kept and accepted")
    categories = sorted({one.category for one in listed})  # including those without any kept image
    grouping = find_labels(labels)
    if grouping is not None:
        if missing := [category for category in categories if category not in grouping]:
            raise MiningError(f"the labels lack {len(missing)} categories (first: {missing[0]!r})")
        grouping = {category: list(grouping[category]) for category in categories}
    files = {
        item.file if layout == "imagenet-d" else f"{item.category}/{item.id}.png": row
        for row in rows
        for item in (row.image.item,)
    }
    texts = {"title": title, "license": license_text, "layout": layout, "reviewed_by": reviewed_by}
    about = {"format": "beaufort mined set", "version": 1, "layout": layout, "categories": categories}
    contents = {
        METADATA: _metadata_file(files),
        DATASHEET: _datasheet(texts, rows, listed, review, grouping, read_omitted(images)).encode(),
        SET_FILE: _json(about),
    }
    if grouping is not None:
        contents[CATEGORIES] = _json(grouping)
    _write(output, files, contents)
    return len(rows)


def _write(output: Path, images: Mapping[str, _Row], contents: Mapping[str, bytes]) -> None:
    """Write missing files, then the manifest; files of a different set are an error."""
    digests = {name: row.selected.sha256 for name, row in images.items()}
    digests |= {name: sha256(content).hexdigest() for name, content in contents.items()}
    existing = set()
    for path in output.rglob("*"):
        if path.is_dir() or remove_leftover(path):
            continue
        name = path.relative_to(output).as_posix()
        if digests.get(name) != sha256(path.read_bytes()).hexdigest():
            raise MiningError(f"{path} is not part of this set; export it into a new or empty folder")
        existing.add(name)
    for name, row in images.items():  # one at a time, because a set may be larger than the memory
        if name not in existing:
            write_bytes(output / name, _content(row.image.path, row.selected))
    for name, content in contents.items():
        if name not in existing:
            write_bytes(output / name, content)
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
    write_bytes(output / MANIFEST, "".join(lines).encode())  # marks the set as complete


def _content(path: Path, selected: SelectedImage) -> bytes:
    """Return the content of an image, which must be that of the selection."""
    content = path.read_bytes()
    if sha256(content).hexdigest() != selected.sha256:
        raise MiningError(f"{selected.file} changed after the selection; generate it again, or select again")
    return content


def _rows(
    images: Path, listed: Sequence[SelectedImage], reviewed: Mapping[str, ImageDecision] | None
) -> Iterator[_Row]:
    """Yield the images that are kept and, with a review, accepted; an error if one has changed."""
    screened = _screened(images)
    generators: dict[str, Mapping[str, Any]] = {}  # shared by images, of which there may be a million
    for one in listed:
        if not one.kept:
            continue
        decision = None
        if reviewed is not None:
            decision = reviewed.get(one.file)
            found = screened.get(one.file)
            if decision is None and found is not None and not (found.passed or found.audited):
                continue
            if decision is None:
                raise MiningError(f"{one.file} is not in the review; review the list of this selection")
            if decision.category != one.category:
                raise MiningError(
                    f"{one.file} was reviewed as {decision.category!r} but selected as {one.category!r}"
                )
            if decision.sha256 != one.sha256:
                raise MiningError(f"{one.file} changed between review and selection; create a new review")
            if decision.decision != "accepted":
                continue
        path = (images / one.file).resolve()
        if not path.is_relative_to(images.resolve()):
            raise MiningError(f"{one.file!r} is not in the folder of the images")
        if not path.is_file():
            raise MiningError(
                f"image not found: {images / one.file}; generate it again with `beaufort mine generate`"
            )
        _content(path, one)
        image = read_image_facts(images / one.file)
        if (image.item.file, image.item.category) != (one.file, one.category):
            raise MiningError(
                f"{one.file} as {one.category!r} was generated as {image.item.file}; select again"
            )
        text = json.dumps(image.generator, sort_keys=True)
        yield _Row(
            replace(image, generator=generators.setdefault(text, image.generator)),
            one,
            decision,
            screened.get(one.file),
        )


def _screened(images: Path) -> dict[str, ScreenedImage]:
    """Return the results of the last screening by file; empty if there was none."""
    if not (images / DECISIONS).is_file():
        return {}
    return {one.file: one for one in read_screening(images).images}


def _decisions(review: Review, images: Path, decided_only: bool) -> dict[str, ImageDecision]:
    """Return the decision about each image by its file."""
    if review.folder.resolve() != images.resolve():
        raise MiningError(f"the review is of the images in {review.folder}, not of those in {images}")
    found = {one.file: one for one in decisions(review)}
    undecided = [one for one in found.values() if one.decision in ("open", "tied")]
    if undecided and not decided_only:
        raise MiningError(
            f"{len(undecided)} images of the review are open or tied (first: {undecided[0].file}); finish "
            "the review, or leave them out with decided_only=yes"
        )
    return found


def _metadata_file(files: Mapping[str, _Row]) -> bytes:
    """Return a Parquet table with a row for each image: its plan, generator, predictions and votes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    items = [row.image.item for row in files.values()]
    selected = [row.selected for row in files.values()]
    votes = [row.decision for row in files.values()]
    generators = {id(row.image.generator): row.image.generator for row in files.values()}
    texts = {key: json.dumps(generator, sort_keys=True) for key, generator in generators.items()}
    table = pa.table(
        {
            "file_name": list(files),  # as Hugging Face's `imagefolder` requires
            "sha256": [one.sha256 for one in selected],
            **{
                name: [getattr(item, name) for item in items]
                for name in ("id", "category", "kind", "nuisance", "prompt")
            },
            "seed": pa.array([item.seed for item in items], pa.int64()),
            "generator": [texts[id(row.image.generator)] for row in files.values()],
            "surrogates": [
                [{"model": model, "predicted": name} for model, name in one.predicted.items()]
                for one in selected
            ],
            "votes_yes": pa.array([one and one.yes for one in votes], pa.int32()),
            "votes_no": pa.array([one and one.no for one in votes], pa.int32()),
            "settled": pa.array([one and one.settled for one in votes], pa.bool_()),
            **_screening_column(files),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _screening_column(files: Mapping[str, _Row]) -> dict[str, list[str | None]]:
    """Return whether each image `passed` the screening, or the check that removed it, if there was one."""
    screened = [row.screened for row in files.values()]
    if not any(screened):
        return {}
    return {"screening": [None if one is None else one.removed_by or "passed" for one in screened]}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _datasheet(
    texts: Mapping[str, str],
    rows: Sequence[_Row],
    listed: Sequence[SelectedImage],
    review: Review | None,
    grouping: Grouping | None,
    omitted: Mapping[str, str],
) -> str:
    """Return the datasheet as Markdown."""
    items = [row.image.item for row in rows]
    surrogates = list(listed[0].predicted)
    fewest = min(row.selected.failures for row in rows)
    many = len(surrogates)
    failed = f"all {many}" if fewest == many else f"at least {fewest} of the {many}"
    by_category = Counter(item.category for item in items).most_common()
    status = None if review is None else review_status(review)

    def quoted(value: Any) -> str:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)

    return render_fragment(
        "mining/datasheet.md",
        **texts,
        items=items,
        screened=Counter(row.screened.removed_by or "passed" for row in rows if row.screened is not None),
        generated=len(listed),
        omitted=Counter(omitted.values()),
        kept=sum(one.kept for one in listed),
        generators=list({quoted(row.image.generator): row.image.generator for row in rows}),
        surrogates=surrogates,
        status=status,
        rules=None if review is None else review.rules,
        grouping=grouping,
        several=sum(len(outputs) > 1 for outputs in (grouping or {}).values()),
        most=by_category[0],
        fewest=by_category[-1],
        categories=by_category,
        prompts={
            kind: [quoted(prompt) for prompt in sorted({item.prompt for item in items if item.kind == kind})]
            for kind in sorted({item.kind for item in items})
        },
        failed="it" if many == 1 else failed,
        voters=[one for one in status.reviewers if one.votes] if status else [],
        decisions=", ".join(
            f"{status.count(name):,} {name}" for name in ("accepted", "rejected", "tied", "open")
        )
        if status
        else "",
        distribution={
            name: sorted(
                Counter(str(getattr(item, name)) for item in items).items(), key=lambda row: (-row[1], row[0])
            )
            for name in ("kind", "nuisance", "category")
        },
        counted=counted,
        estimate=lambda value: "undefined" if value is None else f"{value:.2f}",
    )


@dataclass(frozen=True)
class SetImage:
    """Kind and nuisance of an image; empty if unknown."""

    kind: str
    nuisance: str


@dataclass(frozen=True, eq=False)
class MinedSet:
    """An opened set."""

    data: Dataset
    images: tuple[SetImage, ...]
    """In the order of the dataset."""
    surrogates: tuple[str, ...]
    """Models whose failures selected the images, if known."""
    labels: Grouping | None
    """Outputs of each category, if the set has them."""


def open_set(location: str) -> MinedSet:
    """Open a set of `beaufort mine export`, or any dataset that `load_dataset` opens."""
    data = load_dataset(location)
    folder = Path(parse_spec(location).location)  # also of a part of a set
    known = _read_metadata(folder / METADATA) if (folder / METADATA).is_file() else {}
    folders = {one: one.partition("/")[0] for one in data.ids}
    kinds = {one: first if first in KIND_FOLDERS else "" for one, first in folders.items()}
    images = tuple(known[one][0] if one in known else SetImage(kinds[one], "") for one in data.ids)
    surrogates = dict.fromkeys(name for _, names in known.values() for name in names)
    categories = folder / CATEGORIES
    labels = read_grouping(categories) if categories.is_file() else None
    return MinedSet(data, images, tuple(surrogates), labels)


def _read_metadata(path: Path) -> Mapping[str, tuple[SetImage, tuple[str, ...]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = "file_name" if "file_name" in pq.read_schema(path).names else "file"  # earlier versions
        table = pq.read_table(path, columns=[file, "kind", "nuisance", "surrogates"], use_threads=False)
        return {
            str(row[file]): (
                SetImage(str(row["kind"]), str(row["nuisance"])),
                tuple(str(one["model"] if file == "file_name" else one[0]) for one in row["surrogates"]),
            )
            for row in table.to_pylist()
        }
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise MiningError(f"cannot read {path} as metadata of `beaufort mine export`: {error!r}") from None

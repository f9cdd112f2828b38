"""Pre-screening of selected images before people review them, and its errors against their review.

Three checks are optional: the similarity of image and category, a question to a chat model, and
near-duplicates. A random sample of the removed images stays in the review list, so that the errors can be
estimated.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.files import read_csv, read_json, write_output
from beaufort._core.text import csv_text
from beaufort._core.validation import validate_count, validate_fraction, validate_integer
from beaufort.data.images import read_image
from beaufort.data.labels import DatasetLabels, Grouping, ModelOutputs, find_label_space
from beaufort.metrics.stats import Estimate, clopper_pearson
from beaufort.mining.names import display_name, fill_template
from beaufort.mining.plan import MiningError
from beaufort.mining.predictions import find_labels
from beaufort.mining.review import ImageDecision, Review, decisions, open_review
from beaufort.mining.review.creation import read_listed
from beaufort.models import load_model
from beaufort.models.chat import ChatAsker, open_chat

KEPT, SCREENED, DECISIONS, SETTINGS = "kept.csv", "screened.csv", "screening.csv", "screening.json"
CHECKS = ("similarity", "label", "duplicate")
"""What can remove an image, in this order."""

QUESTION = "Does this image show a {category} that people would recognize? Answer with yes or no."
_PROMPT = "A photo of a {}"
_OPEN_CLIP = "open_clip:"
_COLUMNS = (
    "file",
    "sha256",
    "category",
    "removed_by",
    "audited",
    "rank",
    "similarity",
    "reply",
    "duplicate_of",
)
_BATCH = 64
_HASH_SIDE, _HASH_PIXELS = 8, 32


@dataclass(frozen=True)
class ScreenedImage:
    """An image with the results of the checks."""

    file: str
    sha256: str
    category: str
    removed_by: str = ""
    """One of `CHECKS`; empty if it passed."""
    audited: bool = False
    """Whether it was removed, but is reviewed nevertheless."""
    rank: int | None = None
    """Number of categories that are at least as similar, with its own; None without this check."""
    similarity: float | None = None
    """Cosine between image and prompt; None for models without embeddings."""
    reply: str = ""
    """`yes`, `no`, or why the chat model gave neither: `refused` or `unreadable`, which remove no image."""
    duplicate_of: str = ""

    @property
    def passed(self) -> bool:
        """Whether no check removed it."""
        return not self.removed_by


@dataclass(frozen=True)
class Screening:
    """Decisions on all selected images, and the settings."""

    images: tuple[ScreenedImage, ...]
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    """Requests of the chat model and their cost."""

    def removed(self, check: str) -> int:
        """Return the number of images that a check removed."""
        return sum(one.removed_by == check for one in self.images)


def screen_images(
    folder: Path,
    *,
    model: str | None = None,
    chat: str | None = None,
    top: int = 5,
    hash_bits: int | None = 4,
    embedding: float | None = None,
    audit: int = 100,
    labels: Grouping | str | None = None,
    seed: int = 0,
    model_options: Mapping[str, Any] | None = None,
    chat_options: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Screening:
    """Check the images of `kept.csv`, and write the decisions and the list for the review.

    `screening.csv` and `screening.json` have the decisions and settings; `screened.csv` has the images that
    passed, a random sample of the others, and the controls of `kept.csv`. Chat replies are kept, so an
    interrupted screening continues without asking again.

    Args:
        folder: the folder of the images, with `kept.csv`.
        model: model that chooses among the categories, such as open_clip; no similarity check if None.
        chat: chat model that is asked whether the image shows the category; no label check if None.
        top: the category must be among so many categories that are most similar to the image.
        hash_bits: largest number of different bits of 64 in the perceptual hashes of duplicates, which have
            the same category; None turns this check off.
        embedding: smallest cosine between the embeddings of duplicates; requires an open_clip model.
        audit: number of removed images to review.
        labels: outputs of `model` that count as each category; matched by name by default.
        seed: seed of the sample of removed images.
        model_options: options of `load_model`.
        chat_options: options of `open_chat`, among them prices and budget.
        progress: called with the number of checked images and of all.
    """
    validate_count("top", top)
    validate_integer("audit", audit, 0)
    if hash_bits is not None:
        validate_integer("hash_bits", hash_bits, 0, _HASH_SIDE**2)
    if embedding is not None:
        validate_fraction("embedding", embedding)
        if model is None or not model.startswith(_OPEN_CLIP):
            raise MiningError("embedding requires an open_clip model")
    if model is None and chat is None and hash_bits is None:
        raise MiningError("no check is chosen; pass a model, a chat model or hash_bits")
    listed, others = _read_list(folder / KEPT)
    categories = sorted({category for _, category in listed})
    similar = None if model is None else _Similarity(model, categories, labels, dict(model_options or {}))
    asker = None if chat is None else open_chat(chat, **dict(chat_options or {}))
    before = None if asker is None else asker.usage()
    images: list[ScreenedImage] = []
    hashes: list[int] = []
    embeddings: list[NDArray[np.float32]] = []
    for start in range(0, len(listed), _BATCH):
        some = listed[start : start + _BATCH]
        contents = [read_listed(folder, file) for file, _ in some]
        pixels = [np.asarray(read_image(folder / file).convert("RGB")) for file, _ in some]
        found = [
            ScreenedImage(file, sha256(content).hexdigest(), category)
            for (file, category), content in zip(some, contents, strict=True)
        ]
        if similar is not None:
            ranks, cosines, vectors = similar.check(pixels, [categories.index(one.category) for one in found])
            found = [
                replace(one, rank=rank, similarity=cosine, removed_by="" if rank <= top else "similarity")
                for one, rank, cosine in zip(found, ranks, cosines, strict=True)
            ]
            embeddings += vectors
        if asker is not None:
            found = _check_labels(found, pixels, asker)
        if hash_bits is not None:
            hashes += map(perceptual_hash, pixels)
        images += found
        if progress is not None:
            progress(len(images), len(listed))
    images = _without_duplicates(
        images, hashes, np.array(embeddings, np.float32), hash_bits=hash_bits, embedding=embedding
    )
    removed = [place for place, one in enumerate(images) if one.removed_by]
    for place in random.Random(seed).sample(removed, min(audit, len(removed))):
        images[place] = replace(images[place], audited=True)
    settings = {
        "top": top if similar else None,
        "model": None if similar is None else similar.facts,
        "chat": None if asker is None else json.loads(asker.identity),
        "question": None if asker is None else QUESTION,
        "hash_bits": hash_bits,
        "embedding": embedding,
        "audit": audit,
        "seed": seed,
    }
    notes = () if asker is None or before is None else (asker.cost_note(before),)
    screening = Screening(tuple(images), settings, notes)
    _write(screening, others, folder)
    return screening


def _read_list(path: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str, str]]]:
    """Return file and category of images to review, and the rows of controls and examples."""
    if not path.is_file():
        raise MiningError(f"{path} not found; select images with `beaufort mine select`")
    rows = [
        (row["file"], row["category"], row.get("role") or "")
        for _, row in read_csv(path, ["file", "category"], MiningError)
    ]
    listed = [(file, category) for file, category, role in rows if not role]
    if not listed:
        raise MiningError(f"{path} has no image to review")
    return listed, [row for row in rows if row[2]]


def _write(screening: Screening, others: Sequence[tuple[str, str, str]], folder: Path) -> None:
    rows = [
        (
            *(one.file, one.sha256, one.category, one.removed_by, int(one.audited)),
            *(
                "" if one.rank is None else one.rank,
                "" if one.similarity is None else f"{one.similarity:.4f}",
            ),
            *(one.reply, one.duplicate_of),
        )
        for one in screening.images
    ]
    reviewed = [(one.file, one.category, "") for one in screening.images if one.passed or one.audited]
    if not reviewed:
        raise MiningError("no image passed, and none is audited; there is nothing to review")
    write_output(folder / SETTINGS, (json.dumps(dict(screening.settings), indent=1) + "\n").encode())
    write_output(folder / DECISIONS, csv_text(_COLUMNS, rows).encode())
    write_output(folder / SCREENED, csv_text(("file", "category", "role"), [*reviewed, *others]).encode())


def read_screening(folder: Path) -> Screening:
    """Read the decisions that `screen_images` wrote."""
    images = []
    for line, row in read_csv(folder / DECISIONS, _COLUMNS, MiningError):
        if row["removed_by"] not in ("", *CHECKS) or row["audited"] not in ("0", "1"):
            raise MiningError(f"{folder / DECISIONS}, line {line}: invalid removed_by or audited")
        try:
            rank = int(row["rank"]) if row["rank"] else None
            similarity = float(row["similarity"]) if row["similarity"] else None
        except ValueError:
            raise MiningError(
                f"{folder / DECISIONS}, line {line}: rank and similarity must be numbers"
            ) from None
        images.append(
            ScreenedImage(
                *(row["file"], row["sha256"], row["category"], row["removed_by"], row["audited"] == "1"),
                *(rank, similarity, row["reply"], row["duplicate_of"]),
            )
        )
    return Screening(tuple(images), read_json(folder / SETTINGS, MiningError))


# The checks


class _Similarity:
    """Ranks categories by their similarity to images, with open_clip or any classifier of them."""

    def __init__(
        self, model: str, categories: Sequence[str], labels: Grouping | str | None, options: dict[str, Any]
    ) -> None:
        self._score: Callable[[NDArray[np.uint8]], NDArray[np.float32]]
        self.embeds = model.startswith(_OPEN_CLIP)
        if self.embeds:
            from beaufort.models.open_clip import load_embedder

            names = [display_name(category) for category in categories]
            options = {"classes": names, "templates": (_PROMPT,), **options}
            network, self._texts = load_embedder(model.removeprefix(_OPEN_CLIP), **options)
            self._score, spec = network, network.spec
        else:
            classifier = load_model(model, **options)
            spec = classifier.spec
            space = find_label_space(
                DatasetLabels("the selected images", tuple(categories), np.arange(len(categories)), True),
                ModelOutputs(spec.name, spec.classes, spec.class_names, spec.label_space),
                labels=find_labels(labels),
                convention="restricted" if labels is not None else None,
            )
            self._score = lambda images: np.asarray(space.apply(classifier(images)), np.float32)
        self.facts = {"name": spec.name, "digest": spec.digest}

    def check(
        self, pixels: Sequence[NDArray[np.uint8]], labels: Sequence[int]
    ) -> tuple[list[int], list[float | None], list[NDArray[np.float32]]]:
        """Return the rank of the category of each image, its cosine, and the embeddings."""
        found: list[Any] = [None] * len(pixels)
        for places in _by_shape(pixels):
            for place, row in zip(places, self._score(np.stack([pixels[i] for i in places])), strict=True):
                found[place] = row
        vectors = found if self.embeds else []
        scores = [row @ self._texts.T for row in found] if self.embeds else found
        own = [float(row[label]) for row, label in zip(scores, labels, strict=True)]
        ranks = [int((row >= value).sum()) for row, value in zip(scores, own, strict=True)]
        return ranks, list(own) if self.embeds else [None] * len(own), vectors


def _by_shape(pixels: Sequence[NDArray[np.uint8]]) -> Iterator[list[int]]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, image in enumerate(pixels):
        groups.setdefault(image.shape, []).append(place)
    yield from groups.values()


def _check_labels(
    images: Sequence[ScreenedImage], pixels: Sequence[NDArray[np.uint8]], asker: ChatAsker
) -> list[ScreenedImage]:
    """Ask about images that passed so far."""
    texts = [fill_template(QUESTION, one.category, "") for one in images]
    keys = [asker.key(image, text) for image, text in zip(pixels, texts, strict=True)]
    replies = asker.ask(
        [
            (key, image, text)
            for one, key, image, text in zip(images, keys, pixels, texts, strict=True)
            if one.passed
        ]
    )
    found = []
    for one, key in zip(images, keys, strict=True):
        if one.passed:
            said = replies[key].problem or parse_yes_or_no(replies[key].text)
            one = replace(one, reply=said, removed_by="label" if said == "no" else "")
        found.append(one)
    return found


def parse_yes_or_no(text: str) -> str:
    """Return `yes` or `no` if a reply has only one of the words, else `unreadable`.

    >>> parse_yes_or_no("Yes, it does."), parse_yes_or_no("NO"), parse_yes_or_no("Yes and no")
    ('yes', 'no', 'unreadable')
    """
    words = set(re.findall(r"\b(yes|no)\b", text.casefold()))
    return words.pop() if len(words) == 1 else "unreadable"


def perceptual_hash(pixels: NDArray[np.uint8]) -> int:
    """Return 64 bits: which low frequencies of the gray image are above their median.

    The hash of C. Zauner, "Implementation and benchmarking of perceptual image hash functions" (2010), with
    the DCT of 32×32 pixels.
    """
    from scipy.fft import dctn

    side = (_HASH_PIXELS, _HASH_PIXELS)
    small = Image.fromarray(pixels).convert("L").resize(side, Image.Resampling.LANCZOS)
    low = dctn(np.asarray(small, np.float64))[:_HASH_SIDE, :_HASH_SIDE].ravel()
    bits = low > np.median(low[1:])  # without the mean
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def _without_duplicates(
    images: list[ScreenedImage],
    hashes: Sequence[int],
    embeddings: NDArray[np.float32],
    *,
    hash_bits: int | None,
    embedding: float | None,
) -> list[ScreenedImage]:
    """Remove images that are nearly equal to an earlier one of their category that passed."""
    codes = np.array(hashes, np.uint64)
    passed: dict[str, list[int]] = {}
    found = list(images)
    for place, one in enumerate(images):
        if not one.passed:
            continue
        earlier = passed.setdefault(one.category, [])
        same = np.zeros(len(earlier), np.bool_)
        if hash_bits is not None and earlier:
            same |= np.bitwise_count(codes[earlier] ^ codes[place]) <= hash_bits
        if embedding is not None and earlier:
            same |= embeddings[earlier] @ embeddings[place] >= embedding
        if same.any():
            first = images[earlier[int(same.argmax())]].file
            found[place] = replace(one, removed_by="duplicate", duplicate_of=first)
        else:
            earlier.append(place)
    return found


# Errors against the review


@dataclass(frozen=True)
class ReviewedPart:
    """Images that people reviewed: those that passed, or the audited ones that a check removed."""

    check: str
    """`passed`, one of `CHECKS`, or `removed` for all checks together."""
    kind: str
    """Kind of nuisance; empty for all."""
    images: int
    """Number of images of the part, reviewed or not."""
    reviewed: int
    accepted: Estimate | None
    """Fraction that people accept; None if none is reviewed."""


@dataclass(frozen=True)
class ScreeningErrors:
    """Errors of a screening, with people's decisions as the truth."""

    precision: Estimate
    """Fraction of the images that passed that people accept."""
    recall: Estimate
    """Estimated fraction of the images that people accept that passed; duplicates do not count."""
    parts: tuple[ReviewedPart, ...]
    undecided: int
    """Number of reviewed images that are open or tied, which are left out."""


def screening_errors(screening: Screening, review: Review | Path, *, level: float = 0.95) -> ScreeningErrors:
    """Compare a screening with the decisions of a review of its list.

    Images that passed and removed images are two strata. The interval of recall combines the exact intervals
    of the rates of acceptance in both (Bonferroni); it contains the truth at least as often as `level` says.
    """
    opened = open_review(review) if isinstance(review, Path) else review
    found = {one.file: one for one in decisions(opened)}
    for one in screening.images:
        decision = found.get(one.file)
        if decision is not None and decision.sha256 != one.sha256:
            raise MiningError(f"{one.file} changed between screening and review; screen again")

    def part(
        check: str, images: Sequence[ScreenedImage], kind: str = "", level: float = level
    ) -> ReviewedPart:
        return _part(check, kind, images, found, level)

    images = screening.images
    kept = [one for one in images if one.passed]
    removed = [one for one in images if not one.passed]
    passed = part("passed", kept)
    if passed.accepted is None:
        raise MiningError("the review has no decision on an image that passed")
    half = (1 + level) / 2
    filtered = part("removed", [one for one in removed if one.removed_by != "duplicate"], level=half)
    parts = [passed, *(part(check, [one for one in removed if one.removed_by == check]) for check in CHECKS)]
    for kind in sorted(set(map(_kind, images))):
        for name, some in (("passed", kept), ("removed", removed)):
            parts.append(part(name, [one for one in some if _kind(one) == kind], kind))
    undecided = sum(one.file in found and _decided(found[one.file]) is None for one in screening.images)
    return ScreeningErrors(
        passed.accepted,
        _recall(part("passed", kept, level=half), filtered, level),
        tuple(one for one in parts if one.images),
        undecided,
    )


def _kind(image: ScreenedImage) -> str:
    """Return the kind of nuisance, the first folder of the file."""
    return image.file.partition("/")[0]


def _decided(decision: ImageDecision | None) -> bool | None:
    if decision is None or decision.decision not in ("accepted", "rejected"):
        return None
    return decision.decision == "accepted"


def _part(
    check: str,
    kind: str,
    images: Sequence[ScreenedImage],
    found: Mapping[str, ImageDecision],
    level: float,
) -> ReviewedPart:
    counts = Counter(_decided(found.get(one.file)) for one in images)
    reviewed = counts[True] + counts[False]
    accepted = clopper_pearson(counts[True], reviewed, level) if reviewed else None
    return ReviewedPart(check, kind, len(images), reviewed, accepted)


def _recall(passed: ReviewedPart, removed: ReviewedPart, level: float) -> Estimate:
    """Return the fraction of acceptable images that passed, from the rates of acceptance of both parts."""
    first = passed.accepted
    assert first is not None
    second = removed.accepted
    if second is None:  # nothing was removed, or nothing is known about what was
        second = Estimate(0.0, 0.0, float(removed.images > 0), 0, level=level)

    def share(of_passed: float, of_removed: float) -> float:
        good = passed.images * of_passed
        total = good + removed.images * of_removed
        return good / total if total else 1.0

    return Estimate(
        share(first.value, second.value),
        share(first.low, second.high),
        share(first.high, second.low),
        passed.reviewed + removed.reviewed,
        level=level,
    )

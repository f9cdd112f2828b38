"""Status of a review: decisions, agreement of reviewers, and their reliability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import csv_text, printable, spreadsheet_cell
from beaufort.metrics.stats import Estimate, cohen_kappa, fleiss_kappa, krippendorff_alpha
from beaufort.mining.review.database import Review
from beaufort.mining.review.rules import QUESTIONS
from beaufort.mining.review.votes import check_counts

_RESAMPLES = 2000
_RESAMPLES_EACH = 500
"""Resamples for a category or a pair of reviewers, of which there are many."""
_PAIRS = 10
"""Largest number of pairs of reviewers to compare: those with the most images in common."""
MIN_IMAGES = 10
"""Smallest number of images with two votes for agreement."""

ALL = "approved"
"""Name of all questions together."""


@dataclass(frozen=True)
class ImageDecision:
    """The decision about an image."""

    id: int
    file: str
    sha256: str
    """Digest of the reviewed file."""
    category: str
    yes: int
    no: int
    decision: str
    """`accepted`, `rejected`, `tied` or `open`."""
    settled: bool
    """Whether a tie was settled by an administrator."""
    comments: tuple[str, ...] = ()

    @property
    def disputed(self) -> bool:
        """Whether reviewers disagreed."""
        return self.yes > 0 and self.no > 0


@dataclass(frozen=True)
class Agreement:
    """Agreement of reviewers on a question, over all images or those of a category.

    Only the first votes of an image are used, which every image gets. Later votes are requested only after
    disagreement, so that using them would bias the result.
    """

    about: str
    images: int
    """Images with at least two votes."""
    alpha: Estimate | None
    """None if fewer than `MIN_IMAGES` images have two votes, or if all answers are the same."""
    fleiss: Estimate | None
    """Over the images with all of their first votes."""


@dataclass(frozen=True)
class PairAgreement:
    """Cohen's kappa of two reviewers on approval, over images with both among the first votes."""

    first: str
    second: str
    images: int
    kappa: Estimate | None


@dataclass(frozen=True)
class ReviewerStatus:
    """Activity of a reviewer, and whether the votes count."""

    name: str
    votes: int
    skipped: int
    checks_right: int
    checks: int
    dropped: bool


@dataclass(frozen=True)
class ReviewStatus:
    """Status of a review."""

    images: tuple[ImageDecision, ...]
    questions: tuple[Agreement, ...]
    categories: tuple[Agreement, ...]
    pairs: tuple[PairAgreement, ...]
    reviewers: tuple[ReviewerStatus, ...]

    def count(self, decision: str) -> int:
        """Return the number of images with a decision."""
        return sum(image.decision == decision for image in self.images)

    @property
    def discussed(self) -> tuple[ImageDecision, ...]:
        """Images with disagreement or comments, ties first."""
        some = (image for image in self.images if image.disputed or image.comments)
        return tuple(sorted(some, key=lambda image: image.decision != "tied"))


def decisions(review: Review) -> tuple[ImageDecision, ...]:
    """Return the decision about each image, ordered by file, without controls and examples."""
    comments: dict[int, list[str]] = {}
    for row in review.connection.execute(
        "SELECT s.image, v.comment FROM votes v JOIN showings s ON s.id = v.showing "
        "WHERE v.undone = 0 AND v.comment != '' ORDER BY v.id"
    ):
        comments.setdefault(row["image"], []).append(row["comment"])
    rows = review.connection.execute(
        "SELECT i.*, r.accepted FROM images i LEFT JOIN rulings r ON r.image = i.id AND i.decision = 'tied' "
        "WHERE i.role = '' ORDER BY i.file"
    )
    return tuple(
        ImageDecision(
            **{name: row[name] for name in ("id", "file", "sha256", "category", "yes", "no")},
            decision=row["decision"]
            if row["accepted"] is None
            else ("accepted" if row["accepted"] else "rejected"),
            settled=row["accepted"] is not None,
            comments=tuple(comments.get(row["id"], ())),
        )
        for row in rows
    )


def decisions_csv(review: Review) -> str:
    """Return the decisions as CSV; comments are on one line and safe for spreadsheets."""
    return csv_text(
        ["file", "category", "yes", "no", "decision", "settled", "comments"],
        [
            (
                *(one.file, one.category, one.yes, one.no, one.decision, int(one.settled)),
                spreadsheet_cell(printable(" | ".join(" ".join(text.split()) for text in one.comments))),
            )
            for one in decisions(review)
        ],
    )


def review_status(review: Review) -> ReviewStatus:
    """Return decisions, agreement and reviewers; agreement leaves out dropped reviewers."""
    first = review.rules.first_votes
    by_image: dict[int, list[tuple[Any, ...]]] = {}
    for row in review.connection.execute(
        "SELECT c.image, i.category, c.reviewer, c.recognizable, c.usable, c.single, c.approves "
        "FROM counted_votes c JOIN images i ON i.id = c.image ORDER BY c.image, c.id"
    ):
        by_image.setdefault(row["image"], []).append(tuple(row))
    votes = [vote for given in by_image.values() for vote in given[:first]]
    names = [question.name for question in QUESTIONS] + [ALL]
    questions = tuple(
        _agreement(name, ((vote[0], vote[3 + i]) for vote in votes), first, _RESAMPLES)
        for i, name in enumerate(names)
    )
    categories = tuple(
        _agreement(
            category, ((vote[0], vote[6]) for vote in votes if vote[1] == category), first, _RESAMPLES_EACH
        )
        for category in sorted({vote[1] for vote in votes})
    )
    return ReviewStatus(decisions(review), questions, categories, _pairs(review, votes), _reviewers(review))


def _agreement(about: str, answers: Iterable[tuple[int, int]], first: int, resamples: int) -> Agreement:
    by_image: dict[int, list[int]] = {}
    for image, answer in answers:
        by_image.setdefault(image, [0, 0])[int(bool(answer))] += 1
    counts: NDArray[np.int64] = np.array(list(by_image.values()), np.int64).reshape(-1, 2)
    counts = counts[counts.sum(axis=1) >= 2]
    if len(counts) < MIN_IMAGES:
        return Agreement(about, len(counts), None, None)
    full = counts[counts.sum(axis=1) == first]
    return Agreement(
        about,
        len(counts),
        krippendorff_alpha(counts, resamples=resamples),
        fleiss_kappa(full, resamples=resamples) if len(full) >= MIN_IMAGES else None,
    )


def _pairs(review: Review, votes: list[tuple[Any, ...]]) -> tuple[PairAgreement, ...]:
    names = {row["id"]: row["name"] for row in review.connection.execute("SELECT id, name FROM reviewers")}
    answers: dict[int, dict[int, int]] = {}
    for vote in votes:
        answers.setdefault(vote[2], {})[vote[0]] = int(bool(vote[6]))
    common = {
        (a, b): sorted(answers[a].keys() & answers[b].keys()) for a, b in combinations(sorted(answers), 2)
    }
    most = sorted(common, key=lambda pair: (-len(common[pair]), pair))[:_PAIRS]
    return tuple(
        PairAgreement(
            names[a],
            names[b],
            len(images),
            cohen_kappa(
                [answers[a][image] for image in images],
                [answers[b][image] for image in images],
                resamples=_RESAMPLES_EACH,
            ),
        )
        for a, b in most
        if len(images := common[a, b]) >= MIN_IMAGES
    )


def _reviewers(review: Review) -> tuple[ReviewerStatus, ...]:
    rows = review.connection.execute(
        "SELECT r.id, r.name, r.dropped, "
        "(SELECT COUNT(*) FROM valid_votes v WHERE v.reviewer = r.id) AS votes, "
        "(SELECT COUNT(*) FROM votes v JOIN showings s ON s.id = v.showing WHERE s.reviewer = r.id "
        " AND v.undone = 0 AND v.skipped = 1) AS skipped FROM reviewers r WHERE NOT r.admin ORDER BY r.name"
    ).fetchall()
    return tuple(
        ReviewerStatus(
            *(row["name"], row["votes"], row["skipped"]),
            *(checks.passed, checks.total),
            bool(row["dropped"]),
        )
        for row in rows
        for checks in [check_counts(review.connection, row["id"])]
    )

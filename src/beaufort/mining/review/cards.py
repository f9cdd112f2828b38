"""Cards: which image a reviewer sees next, and the images themselves."""

from __future__ import annotations

import secrets
import sqlite3
import time
from dataclasses import dataclass
from hashlib import sha256

from beaufort.mining.review.creation import read_listed
from beaufort.mining.review.database import Review, ReviewError

_MAX_ID = 2**63 - 1
"""Largest integer of SQLite."""
_APART = 3
"""Smallest number of cards between an image and its repetition."""


@dataclass(frozen=True)
class Card:
    """An image for a reviewer; hidden checks look like any other."""

    showing: str
    """Random id, which reveals neither the image nor its role."""
    category: str
    done: int
    """Number of cards that the reviewer has finished."""
    left: int
    """Number of undecided images when the block of cards began. A count after each vote would reveal checks,
    because it does not change after them."""


def next_card(review: Review, reviewer: int) -> Card | None:
    """Return the reviewer's unfinished card or a new one; None if there is nothing to do now."""
    with review.transaction() as connection:
        showing = _unfinished(connection, reviewer)
        if showing is None:
            image, again = _next_image(connection, review, reviewer)
            if image is None:
                return None
            showing = secrets.token_hex(16)
            connection.execute(
                "INSERT INTO showings (id, reviewer, image, again, shown) VALUES (?, ?, ?, ?, ?)",
                (showing, reviewer, image, again, time.time()),
            )
        row = connection.execute(
            "SELECT i.category, "
            "(SELECT COUNT(*) FROM showings WHERE reviewer = :reviewer AND answered > 0) AS done, "
            "(SELECT COUNT(*) FROM showings WHERE reviewer = :reviewer) AS shown "
            "FROM showings s JOIN images i ON i.id = s.image WHERE s.id = :showing",
            {"reviewer": reviewer, "showing": showing},
        ).fetchone()
        left = _open_images(connection, review, reviewer, (row["shown"] - 1) // review.rules.check_every)
        return Card(showing, row["category"], row["done"], left)


def _open_images(connection: sqlite3.Connection, review: Review, reviewer: int, block: int) -> int:
    """Return the number of undecided images when the reviewer's block of cards began."""
    if review.open_counts.get(reviewer, (None, 0))[0] != block:
        row = connection.execute("SELECT COUNT(*) FROM images WHERE role = '' AND decision = 'open'")
        review.open_counts[reviewer] = (block, row.fetchone()[0])
    return review.open_counts[reviewer][1]


def card_image(review: Review, reviewer: int, showing: str) -> tuple[bytes, str]:
    """Return content and media type of the image of one of the reviewer's cards."""
    row = review.connection.execute(
        "SELECT image FROM showings WHERE id = ? AND reviewer = ?", (showing, reviewer)
    ).fetchone()
    if row is None:
        raise ReviewError("this card was not shown to you")
    return review_image(review, row["image"])


def review_image(review: Review, image: int) -> tuple[bytes, str]:
    """Return content and media type of an image, which must not have changed since the review was created."""
    row = None
    if 0 <= image <= _MAX_ID:
        query = "SELECT file, sha256, type FROM images WHERE id = ?"
        row = review.connection.execute(query, (image,)).fetchone()
    if row is None:
        raise ReviewError("this image is not part of the review")
    content = read_listed(review.folder, row["file"])
    if sha256(content).hexdigest() != row["sha256"]:
        raise ReviewError(f"{row['file']!r} changed after the review was created")
    return content, row["type"]


def _unfinished(connection: sqlite3.Connection, reviewer: int) -> str | None:
    """Return the oldest unfinished card; remove cards without a vote whose image is decided."""
    connection.execute(
        "DELETE FROM showings WHERE reviewer = ? AND answered = 0 AND again = 0 "
        "AND NOT EXISTS (SELECT 1 FROM votes WHERE showing = showings.id) "
        "AND EXISTS (SELECT 1 FROM images i WHERE i.id = image AND i.role = '' AND i.decision != 'open')",
        (reviewer,),
    )
    row = connection.execute(
        "SELECT id FROM showings WHERE reviewer = ? AND answered = 0 ORDER BY rowid LIMIT 1", (reviewer,)
    ).fetchone()
    return None if row is None else str(row["id"])


def _next_image(connection: sqlite3.Connection, review: Review, reviewer: int) -> tuple[int | None, int]:
    """Return the image of a new card, and 1 if it is a repetition."""
    shown = connection.execute("SELECT COUNT(*) FROM showings WHERE reviewer = ?", (reviewer,)).fetchone()[0]
    block, place = divmod(shown, review.rules.check_every)
    # The check has a pseudo-random position in a block of cards.
    if place == sha256(f"{reviewer}/{block}".encode()).digest()[0] % review.rules.check_every:
        kinds = [(_control, 0), (_repetition, 1)]
        for find, again in kinds if block % 2 == 0 else reversed(kinds):
            if (image := find(connection, reviewer)) is not None:
                return image, again
    return _undecided(connection, review, reviewer), 0


def _control(connection: sqlite3.Connection, reviewer: int) -> int | None:
    return _first(
        connection,
        "SELECT id FROM images i WHERE role IN ('control-valid', 'control-invalid') AND NOT EXISTS "
        "(SELECT 1 FROM showings s WHERE s.image = i.id AND s.reviewer = ?) ORDER BY id LIMIT 1",
        (reviewer,),
    )


def _repetition(connection: sqlite3.Connection, reviewer: int) -> int | None:
    return _first(
        connection,
        "SELECT v.image FROM valid_votes v JOIN images i ON i.id = v.image "
        "WHERE v.reviewer = :reviewer AND v.again = 0 AND i.role = '' AND NOT EXISTS "
        "(SELECT 1 FROM showings s WHERE s.image = v.image AND s.reviewer = :reviewer AND s.again = 1) "
        "AND v.id < (SELECT l.id FROM valid_votes l WHERE l.reviewer = :reviewer "
        "ORDER BY l.id DESC LIMIT 1 OFFSET :apart) ORDER BY v.id LIMIT 1",
        {"reviewer": reviewer, "apart": _APART - 1},
    )


def _undecided(connection: sqlite3.Connection, review: Review, reviewer: int) -> int | None:
    """Return the first open image with a free seat; cards shown long ago do not occupy one."""
    return _first(
        connection,
        "SELECT id FROM images i WHERE role = '' AND decision = 'open' AND NOT EXISTS "
        "(SELECT 1 FROM showings s WHERE s.image = i.id AND s.reviewer = ?) AND yes + no + "
        "(SELECT COUNT(*) FROM showings s JOIN reviewers r ON r.id = s.reviewer WHERE s.image = i.id "
        " AND s.again = 0 AND s.answered = 0 AND r.dropped = 0 AND s.shown > ?) < ? ORDER BY id LIMIT 1",
        (reviewer, time.time() - review.rules.seat_s, review.rules.votes),
    )


def _first(
    connection: sqlite3.Connection, query: str, values: tuple[object, ...] | dict[str, object]
) -> int | None:
    row = connection.execute(query, values).fetchone()
    return None if row is None else int(row[0])

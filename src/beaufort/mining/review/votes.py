"""Votes: cast once, undone on request, and counted in the same transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping

from beaufort.mining.review.database import Review, ReviewError
from beaufort.mining.review.rules import QUESTIONS, Checks, ReviewRules, decide

MAX_COMMENT = 1000
"""Largest number of characters of a comment."""


def cast_vote(
    review: Review,
    reviewer: int,
    showing: str,
    answers: Mapping[str, bool] | None,
    *,
    comment: str = "",
) -> None:
    """Save a vote to disk; casting the same vote again changes nothing, so that a browser may retry.

    Args:
        review: the open review.
        reviewer: id of the reviewer.
        showing: id of the card.
        answers: yes or no for each of `QUESTIONS`; None to skip the card.
        comment: comment of the reviewer.
    """
    if answers is not None and set(answers) != {question.name for question in QUESTIONS}:
        raise ReviewError("every question must be answered, or the image skipped")
    if len(comment) > MAX_COMMENT:
        raise ReviewError(f"a comment must have at most {MAX_COMMENT} characters, got {len(comment)}")
    values = [None if answers is None else int(answers[question.name]) for question in QUESTIONS]
    with review.transaction() as connection:
        card = connection.execute(
            "SELECT * FROM showings WHERE id = ? AND reviewer = ?", (showing, reviewer)
        ).fetchone()
        if card is None:
            raise ReviewError("this card was not shown to you")
        existing = connection.execute(
            "SELECT * FROM votes WHERE showing = ? AND undone = 0", (showing,)
        ).fetchone()
        if existing is not None:
            saved = [*(existing[question.name] for question in QUESTIONS), existing["comment"]]
            if saved != [*values, comment]:
                raise ReviewError("this card already has a different vote; undo it first")
            return
        vote = connection.execute(
            "INSERT INTO votes (showing, skipped, recognizable, usable, single, comment, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (showing, answers is None, *values, comment, time.time()),
        ).lastrowid
        connection.execute("UPDATE showings SET answered = ? WHERE id = ?", (vote, showing))
        _count(connection, review.rules, card)


def undo_vote(review: Review, reviewer: int) -> bool:
    """Undo the reviewer's last vote so that its card is shown again; return False if there is none.

    Dropped reviewers cannot undo votes, because they could find and correct failed checks.
    """
    with review.transaction() as connection:
        if is_dropped(connection, reviewer):
            raise ReviewError("your votes no longer count, so they cannot be undone")
        last = connection.execute(
            "SELECT * FROM showings WHERE reviewer = ? AND answered > 0 "
            "ORDER BY answered DESC, rowid DESC LIMIT 1",
            (reviewer,),
        ).fetchone()
        if last is None:
            return False
        connection.execute("UPDATE votes SET undone = 1 WHERE showing = ? AND undone = 0", (last["id"],))
        connection.execute("UPDATE showings SET answered = 0 WHERE id = ?", (last["id"],))
        _count(connection, review.rules, last)
        return True


def settle_tie(review: Review, reviewer: int, image: int, *, accepted: bool) -> None:
    """Accept or reject a tied image."""
    with review.transaction() as connection:
        found = connection.execute("SELECT decision FROM images WHERE id = ?", (image,)).fetchone()
        if found is None or found["decision"] != "tied":
            decision = "unknown" if found is None else found["decision"]
            raise ReviewError(f"only a tied image can be settled, but this one is {decision}")
        connection.execute(
            "INSERT INTO rulings VALUES (?, ?, ?, ?) ON CONFLICT (image) DO UPDATE SET "
            "reviewer = excluded.reviewer, accepted = excluded.accepted, at = excluded.at",
            (image, reviewer, accepted, time.time()),
        )


def _count(connection: sqlite3.Connection, rules: ReviewRules, card: sqlite3.Row) -> None:
    """Update the counts of an image or, after a check, whether the reviewer is dropped."""
    role = connection.execute("SELECT role FROM images WHERE id = ?", (card["image"],)).fetchone()["role"]
    if card["again"] or role:
        _check_reviewer(connection, rules, card["reviewer"])
    else:
        _tally(connection, rules, card["image"])


def _check_reviewer(connection: sqlite3.Connection, rules: ReviewRules, reviewer: int) -> None:
    row = connection.execute("SELECT reinstated FROM reviewers WHERE id = ?", (reviewer,)).fetchone()
    if rules.drops(check_counts(connection, reviewer, after=row["reinstated"])):
        connection.execute("UPDATE reviewers SET dropped = 1 WHERE id = ?", (reviewer,))
        _tally_images_of(connection, rules, reviewer)


def reinstate(review: Review, name: str) -> None:
    """Let a dropped reviewer continue: all votes count again, and checks so far are no longer tested."""
    with review.transaction() as connection:
        row = connection.execute("SELECT id, dropped FROM reviewers WHERE name = ?", (name,)).fetchone()
        if row is None or not row["dropped"]:
            raise ReviewError(f"{name!r} is not a dropped reviewer")
        connection.execute(
            "UPDATE reviewers SET dropped = 0, reinstated = (SELECT COALESCE(MAX(id), 0) FROM votes) "
            "WHERE id = ?",
            (row["id"],),
        )
        _tally_images_of(connection, review.rules, row["id"])


def _tally_images_of(connection: sqlite3.Connection, rules: ReviewRules, reviewer: int) -> None:
    images = connection.execute("SELECT DISTINCT image FROM showings WHERE reviewer = ?", (reviewer,))
    for row in images.fetchall():
        _tally(connection, rules, row["image"])


def is_dropped(connection: sqlite3.Connection, reviewer: int) -> bool:
    """Return whether the reviewer was dropped, so that no vote of theirs counts."""
    row = connection.execute("SELECT dropped FROM reviewers WHERE id = ?", (reviewer,)).fetchone()
    return bool(row is not None and row["dropped"])


def check_counts(connection: sqlite3.Connection, reviewer: int, *, after: int = 0) -> Checks:
    """Return the results of a reviewer's hidden checks, from votes after the one with the id `after`."""
    rows = connection.execute(
        "SELECT CASE WHEN v.again THEN 'repeated' WHEN i.role = 'control-valid' THEN 'valid' "
        "ELSE 'invalid' END AS kind, COUNT(*) AS checks, COALESCE(SUM(CASE "
        "WHEN v.again THEN v.approves = (SELECT f.approves FROM valid_votes f "
        "    WHERE f.image = v.image AND f.reviewer = v.reviewer AND f.again = 0) "
        "ELSE v.approves = (i.role = 'control-valid') END), 0) AS right "
        "FROM valid_votes v JOIN images i ON i.id = v.image "
        "WHERE v.reviewer = :reviewer AND v.id > :after AND (i.role != '' OR (v.again AND EXISTS ("
        "    SELECT 1 FROM valid_votes f "
        "    WHERE f.image = v.image AND f.reviewer = v.reviewer AND f.again = 0 AND f.id > :after))) "
        "GROUP BY kind",
        {"reviewer": reviewer, "after": after},
    )
    return Checks(**{row["kind"]: (row["right"], row["checks"]) for row in rows})


def _tally(connection: sqlite3.Connection, rules: ReviewRules, image: int) -> None:
    yes, no = connection.execute(
        "SELECT COALESCE(SUM(approves), 0), COALESCE(SUM(NOT approves), 0) "
        "FROM counted_votes WHERE image = ?",
        (image,),
    ).fetchone()
    connection.execute(
        "UPDATE images SET yes = ?, no = ?, decision = ? WHERE id = ?",
        (yes, no, decide(yes, no, rules.votes), image),
    )

"""Votes: cast once, undone on request, counted in the transaction that keeps them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping

from beaufort.mining.review.database import Review, ReviewError
from beaufort.mining.review.rules import QUESTIONS, ReviewRules, decide

MAX_COMMENT = 1000
"""Characters of a comment."""


def cast_vote(
    review: Review,
    reviewer: int,
    showing: str,
    answers: Mapping[str, bool] | None,
    *,
    comment: str = "",
) -> None:
    """Keep the answers to a card, or that it was skipped; when this returns, they are on the disk.

    The same vote again changes nothing, so that a browser may send it once more when no reply came.

    Args:
        review: the open review.
        reviewer: who votes.
        showing: the card.
        answers: yes or no for each of `QUESTIONS`; None if the card is skipped.
        comment: anything else the reviewer says.
    """
    if answers is not None and set(answers) != {question.name for question in QUESTIONS}:
        raise ReviewError("every question must be answered, or the image skipped")
    if len(comment) > MAX_COMMENT:
        raise ReviewError(f"a comment must have at most {MAX_COMMENT} characters, got {len(comment)}")
    given = [None if answers is None else int(answers[question.name]) for question in QUESTIONS]
    with review.transaction() as connection:
        card = connection.execute(
            "SELECT * FROM showings WHERE id = ? AND reviewer = ?", (showing, reviewer)
        ).fetchone()
        if card is None:
            raise ReviewError("this card was not shown to you")
        kept = connection.execute(
            "SELECT * FROM votes WHERE showing = ? AND undone = 0", (showing,)
        ).fetchone()
        if kept is not None:
            if [kept[question.name] for question in QUESTIONS] != given or kept["comment"] != comment:
                raise ReviewError("this card has another answer already; undo it first")
            return
        vote = connection.execute(
            "INSERT INTO votes (showing, skipped, recognizable, usable, single, comment, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (showing, answers is None, *given, comment, time.time()),
        ).lastrowid
        connection.execute("UPDATE showings SET answered = ? WHERE id = ?", (vote, showing))
        _count(connection, review.rules, card)


def undo_vote(review: Review, reviewer: int) -> bool:
    """Take the reviewer's last vote back, and show its card again; False if there is none.

    Somebody who was dropped cannot: they would find out which answer was a check, and give another.
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
    """Settle a tie."""
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
    """Bring the image's tally up to date, and, after a check, whether the reviewer still counts."""
    role = connection.execute("SELECT role FROM images WHERE id = ?", (card["image"],)).fetchone()["role"]
    if card["again"] or role:
        _check_reviewer(connection, rules, card["reviewer"])
    else:
        _tally(connection, rules, card["image"])


def _check_reviewer(connection: sqlite3.Connection, rules: ReviewRules, reviewer: int) -> None:
    right, checks = check_counts(connection, reviewer)
    drops = rules.drops(right, checks)
    changed = connection.execute(
        "UPDATE reviewers SET dropped = ? WHERE id = ? AND dropped != ?", (drops, reviewer, drops)
    )
    if changed.rowcount:  # their votes count no longer, or again
        images = connection.execute("SELECT DISTINCT image FROM showings WHERE reviewer = ?", (reviewer,))
        for row in images.fetchall():
            _tally(connection, rules, row["image"])


def is_dropped(connection: sqlite3.Connection, reviewer: int) -> bool:
    """Whether the reviewer's votes no longer count."""
    row = connection.execute("SELECT dropped FROM reviewers WHERE id = ?", (reviewer,)).fetchone()
    return bool(row is not None and row["dropped"])


def check_counts(connection: sqlite3.Connection, reviewer: int) -> tuple[int, int]:
    """How many hidden checks a reviewer got right, of how many: controls, and images shown again."""
    row = connection.execute(
        "SELECT COUNT(*) AS checks, COALESCE(SUM(CASE "
        "WHEN v.again THEN v.approves = (SELECT f.approves FROM valid_votes f "
        "    WHERE f.image = v.image AND f.reviewer = v.reviewer AND f.again = 0) "
        "ELSE v.approves = (i.role = 'control-valid') END), 0) AS right "
        "FROM valid_votes v JOIN images i ON i.id = v.image "
        "WHERE v.reviewer = ? AND (i.role != '' OR (v.again AND EXISTS (SELECT 1 FROM valid_votes f "
        "    WHERE f.image = v.image AND f.reviewer = v.reviewer AND f.again = 0)))",
        (reviewer,),
    ).fetchone()
    return row["right"], row["checks"]


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

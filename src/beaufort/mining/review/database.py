"""The SQLite file of a review. Every vote is a transaction, on disk before it is confirmed."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.mining.review.rules import ReviewRules

VERSION = 1
_RESTORE = "restore it from a copy"
_WAIT_S = 30.0

SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE images (
    id INTEGER PRIMARY KEY, file TEXT NOT NULL UNIQUE, sha256 TEXT NOT NULL, type TEXT NOT NULL,
    category TEXT NOT NULL, role TEXT NOT NULL,
    yes INTEGER NOT NULL DEFAULT 0, no INTEGER NOT NULL DEFAULT 0, decision TEXT NOT NULL DEFAULT 'open'
);
CREATE INDEX queue ON images (role, decision, id);
CREATE TABLE reviewers (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, token BLOB NOT NULL UNIQUE, admin INTEGER NOT NULL,
    begun INTEGER NOT NULL DEFAULT 0, dropped INTEGER NOT NULL DEFAULT 0,
    reinstated INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE showings (
    id TEXT NOT NULL UNIQUE, reviewer INTEGER NOT NULL REFERENCES reviewers (id),
    image INTEGER NOT NULL REFERENCES images (id), again INTEGER NOT NULL, shown REAL NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0, UNIQUE (reviewer, image, again)
);
CREATE INDEX seats ON showings (image);
CREATE TABLE votes (
    id INTEGER PRIMARY KEY, showing TEXT NOT NULL REFERENCES showings (id), skipped INTEGER NOT NULL,
    recognizable INTEGER, usable INTEGER, single INTEGER, comment TEXT NOT NULL, at REAL NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX one_vote ON votes (showing) WHERE undone = 0;
CREATE TABLE rulings (
    image INTEGER PRIMARY KEY REFERENCES images (id), reviewer INTEGER NOT NULL REFERENCES reviewers (id),
    accepted INTEGER NOT NULL, at REAL NOT NULL
);
CREATE VIEW valid_votes AS
    SELECT v.*, s.image, s.reviewer, s.again, v.recognizable AND v.usable AND v.single AS approves
    FROM votes v JOIN showings s ON s.id = v.showing WHERE v.undone = 0 AND v.skipped = 0;
CREATE VIEW counted_votes AS
    SELECT v.* FROM valid_votes v JOIN reviewers r ON r.id = v.reviewer JOIN images i ON i.id = v.image
    WHERE v.again = 0 AND i.role = '' AND r.dropped = 0;
"""

_INDEXES = """
CREATE INDEX IF NOT EXISTS waiting ON showings (reviewer, answered);
CREATE INDEX IF NOT EXISTS given ON votes (showing);
"""
"""Created when a review is opened, because older files lack them; otherwise a card would search all votes.

`answered` is the id of a showing's vote, or 0, so that a reviewer's last vote is found quickly. Older files
have 1 for every vote; there the card shown last counts as the last.
"""

_REVIEWER_COLUMNS = "PRAGMA table_info(reviewers)"
_ADD_REINSTATED = "ALTER TABLE reviewers ADD COLUMN reinstated INTEGER NOT NULL DEFAULT 0"
"""Older files lack this column: the last vote before a reviewer was reinstated, or 0. Checks up to this vote
no longer count."""


class ReviewError(BeaufortError, ValueError):
    """An error of a review."""


class Review:
    """An open review, shared by threads with a connection each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._writing = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self.open_counts: dict[int, tuple[int, int]] = {}
        """For each reviewer, a block of cards and the number of open images when it began."""
        facts = dict(self.connection.execute("SELECT name, value FROM about").fetchall())
        self.folder = Path(facts["folder"])
        self.title = facts["title"]
        self.rules = ReviewRules(**json.loads(facts["rules"]))

    @property
    def connection(self) -> sqlite3.Connection:
        """Connection of the calling thread, in autocommit mode."""
        found = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = connect(self.path)
            self._connections.append(found)
        return found

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in self._connections:
            connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a block as a transaction, which is on disk when the block has ended."""
        with self._writing:  # fairer and faster than waiting in SQLite
            connection = self.connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def open_review(path: Path) -> Review:
    """Open the review in a file."""
    if not path.is_file():
        raise ReviewError(f"review not found: {path}; create it with `beaufort review create`")
    try:
        with contextlib.closing(connect(path)) as connection:
            version = connection.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
            if version is None or version["value"] != str(VERSION):
                raise ReviewError(f"{path} is not a review of version {VERSION}")
            if (found := " ".join(connection.execute("PRAGMA quick_check(1)").fetchone()[0].split())) != "ok":
                raise ReviewError(f"{path} is damaged ({found}); {_RESTORE}")
            connection.executescript(_INDEXES)
            if not any(row["name"] == "reinstated" for row in connection.execute(_REVIEWER_COLUMNS)):
                connection.execute(_ADD_REINSTATED)
        return Review(path)
    except sqlite3.DatabaseError as error:
        raise ReviewError(
            f"cannot open {path} as a review in a writable folder ({error}); {_RESTORE}, or create it again"
        ) from None
    except (KeyError, TypeError, json.JSONDecodeError, OptionError) as error:
        raise ReviewError(f"{path} has invalid settings ({error!r}); {_RESTORE}") from None


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection with durable commits that can read while another one writes."""
    connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection

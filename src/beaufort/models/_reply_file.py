"""Replies of chat models in a SQLite file, so that none is paid for twice.

A reply is on disk before it is used. Threads and processes share the file.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from beaufort._core.errors import OptionError
from beaufort.models.chat_client import ChatReply, NoReply

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, problem TEXT NOT NULL, input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS totals (
    model TEXT PRIMARY KEY, requests INTEGER NOT NULL, input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL
);
"""
_WAIT_S = 60.0
_KEYS = 500
"""Number of keys of a query."""


class Usage(NamedTuple):
    """What the replies of a model took."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class ReplyFile:
    """Replies by key, and totals by model."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise self._error(error) from None

    def find(self, keys: Sequence[str]) -> dict[str, ChatReply]:
        """Return the replies that the file has, by key."""
        found: dict[str, ChatReply] = {}
        with self._open() as connection:
            for start in range(0, len(keys), _KEYS):
                some = keys[start : start + _KEYS]
                query = (
                    "SELECT key, text, problem, input_tokens, output_tokens FROM replies WHERE key IN "
                    f"({', '.join('?' * len(some))})"
                )
                for key, text, problem, first, second in connection.execute(query, some):
                    if problem not in get_args(NoReply):
                        raise self._error(f"unknown problem {problem!r:.40}")
                    found[key] = ChatReply(str(text), problem, int(first), int(second))
        return found

    def add(self, key: str, model: str, reply: ChatReply) -> None:
        """Store a reply, and count it for its model; it is on disk when this returns."""
        usage = (reply.input_tokens, reply.output_tokens)
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(
                    "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)",
                    (key, reply.text, reply.problem, *usage, time.time()),
                )
                connection.execute(
                    "INSERT INTO totals VALUES (?, 1, ?, ?) ON CONFLICT (model) DO UPDATE SET requests = "
                    "requests + 1, input_tokens = input_tokens + excluded.input_tokens, output_tokens = "
                    "output_tokens + excluded.output_tokens",
                    (model, *usage),
                )
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def usage(self, model: str) -> Usage:
        """Return the totals of a model, over all runs and processes."""
        query = "SELECT requests, input_tokens, output_tokens FROM totals WHERE model = ?"
        with self._open() as connection:
            row = connection.execute(query, (model,)).fetchone()
        return Usage(*row) if row else Usage()

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise self._error(error) from None

    def _error(self, cause: object) -> OptionError:
        return OptionError(
            f"cannot use {self.path} for the replies of chat models: {cause}; set replies=FILE"
        )

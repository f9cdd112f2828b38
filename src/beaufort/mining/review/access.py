"""Access to a review: personal tokens, form tokens, and rate limits."""

from __future__ import annotations

import hmac
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from beaufort._core.text import encodable
from beaufort.mining.review.database import Review, ReviewError

_MAX_CALLERS = 10_000


@dataclass(frozen=True)
class Reviewer:
    """A reviewer or administrator, identified by a token."""

    id: int
    name: str
    admin: bool
    begun: bool
    """Whether the instructions were read."""
    token: str = field(repr=False)


def invite(review: Review, name: str, *, admin: bool = False, renew: bool = False) -> str:
    """Invite a reviewer, and return the token, of which the review stores only a hash.

    Args:
        review: the review.
        name: name of the reviewer.
        admin: whether to invite an administrator, who settles ties instead of voting.
        renew: replace the token of somebody who was invited before.
    """
    (token,) = invite_all(review, [name], admin=admin, renew=renew)
    return token


def invite_all(
    review: Review, names: Sequence[str], *, admin: bool = False, renew: bool = False
) -> list[str]:
    """Invite all of several people, or none if one of them cannot be invited; see `invite`."""
    if admin and renew:
        raise ReviewError("renew and admin cannot be used together; a renewed token keeps its role")
    with review.transaction() as connection:
        return [_token(connection, encodable(name), admin, renew) for name in names]


def _token(connection: sqlite3.Connection, name: str, admin: bool, renew: bool) -> str:
    if not name.strip():
        raise ReviewError("the name of a reviewer must not be empty")
    token = secrets.token_urlsafe(32)
    if renew:
        done = connection.execute("UPDATE reviewers SET token = ? WHERE name = ?", (_hash(token), name))
        if not done.rowcount:
            raise ReviewError(f"{name!r} was not invited, so there is no token to renew")
        return token
    try:
        connection.execute(
            "INSERT INTO reviewers (name, token, admin) VALUES (?, ?, ?)", (name, _hash(token), admin)
        )
    except sqlite3.IntegrityError:
        raise ReviewError(f"{name!r} was invited before; use --renew for a new token") from None
    return token


def find_reviewer(review: Review, token: str) -> Reviewer | None:
    """Return the owner of a token; all tokens are compared in constant time, against timing attacks."""
    given = _hash(token)
    found = None
    for row in review.connection.execute("SELECT * FROM reviewers"):
        if hmac.compare_digest(given, row["token"]):
            found = Reviewer(row["id"], row["name"], bool(row["admin"]), bool(row["begun"]), token)
    return found


def form_token(token: str) -> str:
    """Return the token of forms, which other sites cannot know."""
    return hmac.new(token.encode(), b"form", sha256).hexdigest()


def is_form_token(given: str, token: str) -> bool:
    """Return whether a form came from a page of the token's owner."""
    return hmac.compare_digest(given.encode(), form_token(token).encode())


class RateLimit:
    """A limit on the rate of requests of each caller, with bursts."""

    def __init__(self, rate_hz: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate_hz, self._burst, self._clock = rate_hz, burst, clock
        self._callers: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def allows(self, caller: str) -> bool:
        """Return whether one more request is allowed, and count it."""
        with self._lock:
            now = self._clock()
            left, then = self._callers.pop(caller, (float(self._burst), now))
            left = min(self._burst, left + (now - then) * self._rate_hz)
            allowed = left >= 1
            self._callers[caller] = (left - 1 if allowed else left, now)
            if len(self._callers) > _MAX_CALLERS:  # the least recent one
                self._callers.popitem(last=False)
            return allowed


def _hash(token: str) -> bytes:
    # Tokens are 256 random bits, so a single round of a hash is safe.
    return sha256(token.encode("utf-8", "surrogatepass")).digest()

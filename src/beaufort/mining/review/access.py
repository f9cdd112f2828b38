"""Who may do what: tokens, forms that only our own pages can send, and a limit on the rate of requests."""

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
    """Somebody who showed a token."""

    id: int
    name: str
    admin: bool
    begun: bool
    """Whether the instructions were read."""
    token: str = field(repr=False)


def invite(review: Review, name: str, *, admin: bool = False, renew: bool = False) -> str:
    """A token for somebody; the review keeps its hash alone, so it is shown this once.

    Args:
        review: what the token lets into.
        name: of the reviewer.
        admin: whether they see the admin page and settle ties, in place of voting.
        renew: give somebody who was invited before a new token; the old one ends.
    """
    (token,) = invite_all(review, [name], admin=admin, renew=renew)
    return token


def invite_all(
    review: Review, names: Sequence[str], *, admin: bool = False, renew: bool = False
) -> list[str]:
    """A token for each of several people, or none if one of them cannot have one; else as `invite`."""
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
        raise ReviewError(f"{name!r} was invited before; renew (--renew) gives a new token") from None
    return token


def find_reviewer(review: Review, token: str) -> Reviewer | None:
    """Whose token this is; all are compared, in constant time, so that no answer tells how near it was."""
    given = _hash(token)
    found = None
    for row in review.connection.execute("SELECT * FROM reviewers"):
        if hmac.compare_digest(given, row["token"]):
            found = Reviewer(row["id"], row["name"], bool(row["admin"]), bool(row["begun"]), token)
    return found


def form_token(token: str) -> str:
    """What a form must carry; a page of somebody else's cannot know it."""
    return hmac.new(token.encode(), b"form", sha256).hexdigest()


def is_form_token(given: str, token: str) -> bool:
    """Whether a form came from a page that was shown to the owner of the token."""
    return hmac.compare_digest(given.encode(), form_token(token).encode())


class RateLimit:
    """So many requests a second for each caller, and a few more at once."""

    def __init__(self, rate_hz: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate_hz, self._burst, self._clock = rate_hz, burst, clock
        self._callers: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def allows(self, caller: str) -> bool:
        """Whether there is room for one more, which is then taken."""
        with self._lock:
            now = self._clock()
            left, then = self._callers.pop(caller, (float(self._burst), now))
            left = min(self._burst, left + (now - then) * self._rate_hz)
            allowed = left >= 1
            self._callers[caller] = (left - 1 if allowed else left, now)
            if len(self._callers) > _MAX_CALLERS:  # the one that was silent for the longest time
                self._callers.popitem(last=False)
            return allowed


def _hash(token: str) -> bytes:
    """Tokens are 256 random bits, so one round of a hash is enough: nobody can try them all."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()

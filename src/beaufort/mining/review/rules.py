"""Questions of a review, and rules for when votes decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from beaufort._core.validation import validate_choice, validate_count, validate_integer, validate_number


class Question(NamedTuple):
    """A question with the answers yes and no."""

    name: str
    text: str
    """Text with `{category}` for the intended category."""


QUESTIONS = (
    Question("recognizable", "Can you recognize the object: {category}?"),
    Question("usable", "Could it serve as one?"),
    Question("single", "Is it the only category in the image?"),
)
"""A vote approves an image with yes to all of them."""


@dataclass(frozen=True)
class ReviewRules:
    """Rules for when an image is decided, and when a reviewer is dropped."""

    votes: int = 3
    """Votes for each image; more than half decide, as soon as the rest cannot change the result."""
    check_every: int = 5
    """One card in so many is a hidden check: a control with a known answer, or a repeated image."""
    min_checks: int = 4
    """Smallest number of checks before a reviewer can be dropped."""
    min_right: float = 0.75
    """Fraction of checks to pass: controls answered correctly, repeated images answered as before."""
    seat_s: float = 900.0
    """Seconds for which an unfinished card reserves one of the image's votes."""

    def __post_init__(self) -> None:
        validate_count("votes", self.votes)
        validate_integer("check_every", self.check_every, 2)
        validate_count("min_checks", self.min_checks)
        validate_number("min_right", self.min_right, 0, 1)
        validate_number("seat_s", self.seat_s, 0)

    @property
    def first_votes(self) -> int:
        """Number of votes that every image gets, because fewer cannot decide.

        >>> [ReviewRules(votes=votes).first_votes for votes in (1, 2, 3, 4, 5)]
        [1, 2, 2, 3, 3]
        """
        return self.votes // 2 + 1

    def drops(self, right: int, checks: int) -> bool:
        """Return whether a reviewer with so many passed checks is dropped.

        >>> ReviewRules().drops(2, 3), ReviewRules().drops(2, 4)
        (False, True)
        """
        return checks >= self.min_checks and right < self.min_right * checks


def parse_rules(options: Mapping[str, Any]) -> ReviewRules:
    """Return rules with some options; the others have their defaults."""
    for name in options:
        validate_choice("option of reviews", name, [field.name for field in fields(ReviewRules)])
    return ReviewRules(**options)


def decide(yes: int, no: int, votes: int) -> str:
    """Return `accepted` or `rejected` once missing votes cannot change the result, else `tied` or `open`.

    >>> decide(2, 0, 3), decide(1, 1, 3), decide(2, 2, 4), decide(0, 3, 4)
    ('accepted', 'open', 'tied', 'rejected')
    """
    if 2 * yes > max(votes, yes + no):
        return "accepted"
    if 2 * no > max(votes, yes + no):
        return "rejected"
    return "tied" if yes + no >= votes else "open"

"""What is asked, and when the answers decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from beaufort._core.validation import validate_choice, validate_count, validate_integer, validate_number


class Question(NamedTuple):
    """Something that is answered with yes or no."""

    name: str
    text: str
    """As people read it; `{category}` stands for the category that was intended."""


QUESTIONS = (
    Question("recognizable", "Can you recognize the object: {category}?"),
    Question("usable", "Could it serve as one?"),
    Question("single", "Is it the only category in the image?"),
)
"""An answer approves of an image if it says yes to all of them."""


@dataclass(frozen=True)
class ReviewRules:
    """When an image is decided, and when a reviewer no longer counts."""

    votes: int = 3
    """Votes that an image gets; more than half of them decide, as soon as the rest cannot change that."""
    check_every: int = 5
    """One card in so many is a hidden check: a control with a known answer, or an image shown again."""
    min_checks: int = 4
    """Checks before a reviewer can be dropped."""
    min_right: float = 0.75
    """Share of checks that must be right: controls answered as known, repeated images as before."""
    seat_s: float = 900.0
    """Seconds for which a card that was shown keeps its place among an image's votes."""

    def __post_init__(self) -> None:
        validate_count("votes", self.votes)
        validate_integer("check_every", self.check_every, 2)
        validate_count("min_checks", self.min_checks)
        validate_number("min_right", self.min_right, 0, 1)
        validate_number("seat_s", self.seat_s, 0)

    @property
    def first_votes(self) -> int:
        """Votes that an image gets whatever they say: fewer cannot decide.

        >>> [ReviewRules(votes=votes).first_votes for votes in (1, 2, 3, 4, 5)]
        [1, 2, 2, 3, 3]
        """
        return self.votes // 2 + 1

    def drops(self, right: int, checks: int) -> bool:
        """Whether somebody with so many checks right no longer counts.

        >>> ReviewRules().drops(2, 3), ReviewRules().drops(2, 4)
        (False, True)
        """
        return checks >= self.min_checks and right < self.min_right * checks


def parse_rules(options: Mapping[str, Any]) -> ReviewRules:
    """Return the rules with some options that a user typed; the others have their defaults."""
    for name in options:
        validate_choice("option of reviews", name, [field.name for field in fields(ReviewRules)])
    return ReviewRules(**options)


def decide(yes: int, no: int, votes: int) -> str:
    """Accepted or rejected as soon as the votes that are missing cannot change it; tied, or open.

    >>> decide(2, 0, 3), decide(1, 1, 3), decide(2, 2, 4), decide(0, 3, 4)
    ('accepted', 'open', 'tied', 'rejected')
    """
    if 2 * yes > max(votes, yes + no):
        return "accepted"
    if 2 * no > max(votes, yes + no):
        return "rejected"
    return "tied" if yes + no >= votes else "open"

"""Questions of a review, and rules for when votes decide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from beaufort._core.validation import (
    validate_choice,
    validate_count,
    validate_fraction,
    validate_integer,
    validate_number,
)


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


_LESS_RELIABLE = (0.5, 0.8)
"""Fractions of the reliability to test against."""
_LARGEST = 700.0
"""Logarithm of a number that is still a float."""


class Checks(NamedTuple):
    """For each kind of hidden check, how many were passed, and how many there were."""

    valid: tuple[int, int] = (0, 0)
    invalid: tuple[int, int] = (0, 0)
    repeated: tuple[int, int] = (0, 0)

    @property
    def passed(self) -> int:
        """Number of passed checks."""
        return sum(right for right, _ in self)

    @property
    def total(self) -> int:
        """Number of checks."""
        return sum(of for _, of in self)


@dataclass(frozen=True)
class ReviewRules:
    """Rules for when an image is decided, and when a reviewer is dropped."""

    votes: int = 3
    """Votes for each image; more than half decide, as soon as the rest cannot change the result."""
    check_every: int = 5
    """One card in so many is a hidden check: a control with a known answer, or a repeated image."""
    min_checks: int = 4
    """Smallest number of checks before a reviewer can be dropped."""
    min_right: float = 0.9
    """Fraction of checks that a reliable reviewer passes: controls answered correctly, and repeated images
    answered as before."""
    error: float = 0.01
    """Largest probability that a reliable reviewer is dropped during the review."""
    seat_s: float = 900.0
    """Seconds for which an unfinished card reserves one of the image's votes."""

    def __post_init__(self) -> None:
        validate_count("votes", self.votes)
        validate_integer("check_every", self.check_every, 2)
        validate_count("min_checks", self.min_checks)
        validate_number("min_right", self.min_right, 0, 1)
        validate_fraction("error", self.error)
        validate_number("seat_s", self.seat_s, 0)

    @property
    def first_votes(self) -> int:
        """Number of votes that every image gets, because fewer cannot decide.

        >>> [ReviewRules(votes=votes).first_votes for votes in (1, 2, 3, 4, 5)]
        [1, 2, 2, 3, 3]
        """
        return self.votes // 2 + 1

    def drops(self, checks: Checks) -> bool:
        """Return whether a reviewer with these results of checks is dropped.

        This is a sequential test. For a reliable reviewer, the mean of likelihood ratios of less reliable
        reviewers is a supermartingale that starts at 1. By Ville's inequality, the probability that it ever
        reaches 1 / `error` is at most `error`, however many checks follow. The separate ratio for invalid
        controls detects reviewers who always answer yes.

        >>> ReviewRules().drops(Checks(invalid=(0, 3))), ReviewRules().drops(Checks(invalid=(0, 4)))
        (False, True)
        >>> ReviewRules().drops(Checks(valid=(20, 20), invalid=(0, 5), repeated=(30, 30)))
        True
        """
        if checks.total < self.min_checks:
            return False
        controls = tuple(map(sum, zip(checks.valid, checks.invalid, strict=True)))
        kinds = (controls, checks.invalid, checks.repeated)
        return sum(self._evidence(right, of - right) for right, of in kinds) / len(kinds) >= 1 / self.error

    def _evidence(self, right: int, wrong: int) -> float:
        """Return the mean likelihood ratio of two less reliable reviewers to a reliable one."""
        if wrong and self.min_right == 1:
            return math.inf
        ratios = []
        for factor in _LESS_RELIABLE:
            failing = 1.0 if not wrong else (1 - factor * self.min_right) / (1 - self.min_right)
            ratios.append(math.exp(min(right * math.log(factor) + wrong * math.log(failing), _LARGEST)))
        return sum(ratios) / len(ratios)


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

"""Whether a free answer names the right one of two categories."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from beaufort.mining.names import display_name, synonyms
from beaufort.mining.plan import MiningError

ChoiceOutcome = Literal["right", "wrong", "both", "neither"]

SCORINGS = ("whole-words", "as-published")
"""Names as whole words, the longest first; or as parts of words, as the evaluation of ImageNet-D has it."""

_INSIDE = (("can opener", "pen"), ("drying rack for plates", "plate"))
"""Pairs that the published evaluation knows to contain each other; the longer name is tried first."""


def score_answer(answer: str, truth: str, distractor: str, *, scoring: str = "whole-words") -> ChoiceOutcome:
    """Which of two categories an answer names, by its name or a synonym.

    Args:
        answer: what a model said, in its own words.
        truth: the intended category.
        distractor: the other one.
        scoring: one of `SCORINGS`. With whole words a name inside a longer one that matched does not count.

    >>> score_answer("It is a can opener.", "can_opener", "pen")
    'right'
    >>> [score_answer("A pencil!", "pen", "bucket", scoring=scoring) for scoring in SCORINGS]
    ['neither', 'right']
    """
    check_scoring(scoring)
    said = answer.lower()
    if scoring == "as-published":
        return _as_published(said, truth, distractor)
    right, wrong = _named(said, _names(truth), _names(distractor))
    return _outcome(right, wrong)


def _names(category: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((display_name(category), *(name.lower() for name in synonyms(category)))))


def _outcome(right: bool, wrong: bool) -> ChoiceOutcome:
    if right and wrong:
        return "both"
    return "right" if right else "wrong" if wrong else "neither"


def _named(said: str, first: Sequence[str], second: Sequence[str]) -> tuple[bool, bool]:
    """Whether each of two lists has a name that stands in a text; a longer name takes the words it covers."""
    found = [False, False]
    names = [(name, side) for side, names in enumerate((first, second)) for name in names]
    for name, side in sorted(names, key=lambda pair: -len(pair[0])):
        pattern = _pattern(name)
        if pattern.search(said):
            found[side] = True
            if not any(other == name and own != side for other, own in names):
                said = pattern.sub(" \0 ", said)  # a word of its own that no name has
    return found[0], found[1]


def _pattern(name: str) -> re.Pattern[str]:
    """A name as whole words, also in the plural; spaces and hyphens are the same."""
    words = [re.escape(word) for word in re.split(r"[\s_-]+", name) if word]
    return re.compile(r"(?<!\w)" + r"[\s_-]+".join(words) + r"(?:e?s)?(?!\w)")


def _as_published(said: str, truth: str, distractor: str) -> ChoiceOutcome:
    names = (display_name(truth), display_name(distractor))
    for pair in _INSIDE:
        if set(pair) == set(names):  # the longer one first, and only if it is not there the other
            found = next((name for name in pair if name in said), None)
            return "neither" if found is None else "right" if found == names[0] else "wrong"
    right, wrong = (any(name in said for name in _names(one)) for one in (truth, distractor))
    return _outcome(right, wrong)


def check_scoring(scoring: str) -> None:
    """Refuse what is no way to score answers."""
    if scoring not in SCORINGS:
        raise MiningError(f"scoring must be one of {', '.join(SCORINGS)}, got {scoring!r}")

"""How far an attack may go, as it is written: `8/255`, `0.5/255` or `0.1`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from beaufort.errors import OptionError

__all__ = ["Epsilon"]

_TEXT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)(?:/([1-9][0-9]{0,5}))?")


@dataclass(frozen=True)
class Epsilon:
    """The radius of the ball around an image, in units of the range 0..1 of its values.

    It keeps its spelling, so that a text reads back as what it was.

    >>> Epsilon("0.5/255").value == 0.5 / 255
    True
    >>> Epsilon("-1")
    Traceback (most recent call last):
    beaufort.errors.OptionError: epsilon must be a number from 0, written as 8/255 or 0.5, got '-1'
    """

    text: str

    def __post_init__(self) -> None:
        if not (isinstance(self.text, str) and _TEXT.fullmatch(self.text)):
            raise OptionError(
                f"epsilon must be a number from 0, written as 8/255 or 0.5, got {self.text!r:.60}"
            )

    @property
    def value(self) -> float:
        """The number, rounded once."""
        match = _TEXT.fullmatch(self.text)
        assert match is not None
        return float(Fraction(match[1]) / int(match[2] or 1))

    def __str__(self) -> str:
        return self.text
